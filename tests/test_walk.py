"""Two walks through the code: a record from topic to topic, a SELECT from socket to socket.

docs/walk.md has them. If the code takes another way, these tests fail: look whether it should, and
write the page again with ``RECLOCK_WALK=1 pytest tests/test_walk.py``.
"""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from reclock import ManualClock
from reclock.connectors.kafka.cluster import Span
from reclock.engine.place import segments_of
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database
from reclock.spark.engine import SparkEngine
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.testing.outlets import MemoryOutlets
from walk import Walk

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "walk.md"
ROW = re.compile(r"^\| \d+ \| \[([\w/]+\.py)\]", re.MULTILINE)
OF_SPARK = {"spark/master.py", "spark/stoppable.py"}
"""What a tick asks about Spark only if other tests of this process have started it."""

RECORD, SELECT = "## A record, from topic to topic", "## A SELECT, from socket to socket"

INTRODUCTION = """# Walks through the code

Which modules run, in the order in which they are first entered.
[tests/test_walk.py](../tests/test_walk.py) traces both walks, and writes this page.
What Spark, Kafka, SQLite and Arrow do in between is left out.
"""


@pytest.fixture
def kafka() -> MemoryKafka:
    return MemoryKafka()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def db(tmp_path: Path, kafka: MemoryKafka, clock: ManualClock) -> Iterator[Database]:
    made = Database(
        tmp_path / "state",
        SparkEngine(segments_of(tmp_path / "state")),
        clock=clock,
        background=False,
        clusters=lambda connection: kafka.cluster(connection.isolation),
        outlets=MemoryOutlets(kafka),
    )
    with made:
        yield made


def written(kafka: MemoryKafka) -> int:
    """Return how many messages the sink has committed."""
    cluster = kafka.cluster("read_committed")
    high = cluster.watermarks("out", [0])[0].high
    return sum(b.num_rows for b in cluster.fetch("out", [Span(0, 0, high)], []))


def of_page(heading: str) -> set[str]:
    """Return the modules of a walk, as the page has them."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return set(ROW.findall(text.partition(heading)[2].partition("\n## ")[0]))


def checked(heading: str, said: str, walk: Walk) -> None:
    """Compare a walk with the page, or write it."""
    if os.environ.get("RECLOCK_WALK"):
        packages = {module.partition("/")[0] for module in walk.modules if "/" in module}
        counts = (
            f"{len(walk.modules)} modules of {len(packages)} packages, "
            f"{len(walk.functions)} functions, "
            f"{len(walk.borders)} pairs of modules call across a border of packages."
        )
        section = f"{heading}\n\n{said}\n\n{counts}\n\n{walk.table()}\n"
        text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else INTRODUCTION
        before, found, after = text.partition(heading)
        rest = after.partition("\n## ")[2] if found else ""
        PAGE.write_text(
            before.rstrip() + "\n\n" + section + (f"\n## {rest}" if rest else ""), encoding="utf-8"
        )
    assert set(walk.modules) - OF_SPARK == of_page(heading) - OF_SPARK


def test_a_record_from_topic_to_topic(db: Database, kafka: MemoryKafka, clock: ManualClock) -> None:
    topic = kafka.create_topic(1)
    db.execute(
        f"CREATE SOURCE s (k BIGINT, v BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON;"
        "CREATE MATERIALIZED VIEW m AS SELECT k, v FROM s WHERE v > 0;"
        "CREATE SINK o FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out' FORMAT JSON ENVELOPE DEBEZIUM "
        "WITH (reuse_topic = true)"
    )
    walk = Walk()
    with walk.watching():
        for number in range(1, 6):
            before = written(kafka) if number == 5 else 0
            kafka.produce(topic, 0, Record(b'{"k": %d, "v": %d}' % (number, number)))
            clock.advance(1_000)
            if number == 5:
                with walk.recording():
                    db.tick()
            else:
                db.tick()
        assert written(kafka) == before + 1
    said = "One tick: a record of Kafka, through a materialized view, into a sink of Kafka."
    checked(RECORD, said, walk)


def test_a_select_from_socket_to_socket(db: Database) -> None:
    db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
    db.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    walk = Walk()
    with (
        walk.watching(),
        serving(db, Options(port=0, trusts_local=True)) as server,
        psycopg.connect(
            host="127.0.0.1", port=server.port, user="me", dbname="reclock", autocommit=True
        ) as client,
    ):
        for number in range(5):
            with walk.recording() if number == 4 else nullcontext():
                found = client.execute("SELECT k, v FROM t WHERE k = 2").fetchall()
            assert found == [(2, 20)]
    said = "One query of a client that has sent it before: its plan is kept."
    checked(SELECT, said, walk)
