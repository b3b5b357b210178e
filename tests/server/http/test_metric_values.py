"""What metrics say is what happens: of each family a value that is not nothing."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from databases import Opener, _no_power_is_lost, opener
from reclock.engine.supervisor import Failure
from reclock.errors import Corrupt, Error, StorageError
from reclock.server.background import serving
from reclock.server.http.gauges import Gauges
from reclock.server.http.metrics import FAMILIES, Metrics
from reclock.server.server import Options
from reclock.session.facts import SinkFacts
from reclock.session.source_facts import SourceFacts
from reclock.testing.kafka_upstream import Record

if TYPE_CHECKING:
    from reclock.session.database import Database

__all__ = ["Opener", "_no_power_is_lost", "opener"]

NOW = 1_700_000_000_000
MADE = """
CREATE TABLE t (k INT PRIMARY KEY, a INT, at TIMESTAMP WITH TIME ZONE);
CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a;
CREATE INDEX i ON m (a);
"""


class Scraped:
    """The metrics of a database, as Prometheus reads them."""

    def __init__(self, db: Database, gauges: Gauges | None = None) -> None:
        self._metrics = Metrics(db, gauges or Gauges())

    def __call__(self, name: str, **labels: str) -> float:
        text = self._metrics.text().decode()
        (found,) = [
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"reclock_{name}" and labels.items() <= sample.labels.items()
        ]
        return found


@pytest.fixture
def db(opener: Opener) -> Database:
    opener.clock.set(NOW)
    made = opener()
    made.execute(MADE)
    return made


@pytest.fixture
def value(db: Database) -> Scraped:
    return Scraped(db)


def tick(opener: Opener, db: Database, ms: int = 1_000) -> None:
    opener.clock.advance(ms)
    db.tick()


def test_statements_look_ups_and_errors(db: Database, opener: Opener, value: Scraped) -> None:
    db.execute("INSERT INTO t VALUES (1, 7, NULL)")
    tick(opener, db)
    with db.session() as session:
        for _ in range(3):
            assert session.execute("SELECT n FROM m WHERE a = 7").rows == [(1,)]
    kinds = {k: sum(h.buckets) for k, h in db.meters.statements().items()}
    assert kinds["insert"] == value("statement_duration_seconds_count", kind="insert") == 1
    looked = kinds.get("look_up", 0) + kinds.get("select", 0)
    assert looked >= 3
    for _ in range(2):
        with pytest.raises(Error):
            db.execute("SELECT nothing FROM t")
    with pytest.raises(Error):
        db.execute("INSERT INTO t VALUES (1, 7, NULL)")
    assert value("statement_errors_total", code="42703") == 2
    assert value("statement_errors_total", code="23505") == 1


def test_look_ups_over_the_wire(db: Database, opener: Opener) -> None:
    """A prepared look-up is answered by the thread that listens, and is counted apart."""
    db.execute("INSERT INTO t VALUES (1, 7, NULL)")
    tick(opener, db)
    with serving(db, Options(port=0, trusts_local=True)) as server:
        value = Scraped(db, Gauges(lambda: server.sessions))
        where = f"host=127.0.0.1 port={server.port} dbname=reclock user=me"
        with psycopg.connect(where, autocommit=True) as one, psycopg.connect(where):
            one.prepare_threshold = 0
            for _ in range(4):
                found = one.execute("SELECT n FROM m WHERE a = %s", [7]).fetchall()
                assert found == [(1,)]
            assert value("connections", protocol="postgresql") == 2
        assert value("statement_duration_seconds_count", kind="look_up") >= 1


def test_a_sink_that_is_behind_and_tries_again(
    db: Database, opener: Opener, value: Scraped
) -> None:
    db.execute(
        "CREATE SINK s FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out' KEY (a) FORMAT JSON "
        "ENVELOPE UPSERT WITH (reuse_topic = true)"
    )
    db.execute("INSERT INTO t VALUES (1, 7, NULL)")
    tick(opener, db)
    assert value("sink_messages_total", sink="s") == 1
    assert value("sink_transactions_total", sink="s") == 1
    assert value("sink_bytes_total", sink="s") > 0
    frontier = value("sink_frontier_timestamp_seconds", sink="s")
    assert NOW < 1_000 * frontier <= NOW + 2_000
    opener.kafka.running = False
    db.execute("INSERT INTO t VALUES (2, 8, NULL)")
    for _ in range(3):
        tick(opener, db)
    assert value("sink_state", sink="s", state="stalled") == 1
    assert value("sink_state", sink="s", state="running") == 0
    assert value("sink_retries_total", sink="s") == 3
    assert 2 <= value("sink_lag_seconds", sink="s") <= 4
    opener.kafka.running = True
    tick(opener, db)
    assert value("sink_state", sink="s", state="running") == 1
    assert value("sink_messages_total", sink="s") == 2
    assert value("sink_lag_seconds", sink="s") <= 1


def test_holds_and_how_old_they_are(db: Database, opener: Opener, value: Scraped) -> None:
    tick(opener, db)
    with db.subscribe("SUBSCRIBE m"), db.subscribe("SUBSCRIBE m"):
        before = value("holds", object="m")
        for _ in range(5):
            tick(opener, db, 10_000)
        assert before == value("holds", object="m") >= 2
        assert value("hold_age_seconds", object="m") >= 49


def test_an_expiration_comes_nearer(db: Database, opener: Opener, value: Scraped) -> None:
    db.execute("ALTER SYSTEM SET compute_replica_expiration_offset = '10h'")
    db.execute(
        "CREATE MATERIALIZED VIEW recent AS SELECT k FROM t WHERE "
        "mz_now() <= extract(epoch FROM at)::bigint * 1000 + 3600000"
    )
    tick(opener, db)
    first = value("expiration_remaining_seconds", object="recent")
    tick(opener, db, 60_000)
    assert 35_900 < first <= 36_000
    assert value("expiration_remaining_seconds", object="recent") == first - 60


def test_a_timeline_that_fails_and_a_process_that_has(
    db: Database, value: Scraped, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert value("timeline_failing", timeline="EpochMilliseconds") == value("failed") == 0
    (pace,) = db._core.world.timelines
    failure = Failure(pace, db._core.world[pace].upper, StorageError("no"), 1, 0.0)
    monkeypatch.setattr(db._core, "loop", SimpleNamespace(failures={pace: failure}, stop=None))
    assert value("timeline_failing", timeline="EpochMilliseconds") == 1
    monkeypatch.setattr(type(db), "failure", property(lambda _: Corrupt("broken")))
    assert value("failed") == 1
    monkeypatch.setattr(db._core, "loop", None)


def test_merges_of_many_small_runs(db: Database, opener: Opener, value: Scraped) -> None:
    end, n = monotonic() + 60, 0
    while not value("merges_total", outcome="done"):
        assert monotonic() < end, "nothing is merged"
        db.execute(f"INSERT INTO t VALUES ({n}, {n % 3}, NULL)")
        tick(opener, db)
        n += 1
    assert value("merges_total", outcome="failed") == 0
    db.meters.merged(ok=False)
    assert value("merges_total", outcome="failed") == 1


def test_errors_in_the_place_of_rows(db: Database, opener: Opener, value: Scraped) -> None:
    db.execute("CREATE MATERIALIZED VIEW bad AS SELECT 10 / a AS q FROM t")
    db.execute("INSERT INTO t VALUES (1, 0, NULL)")
    tick(opener, db)
    db.facts.faults.look()
    assert value("object_errors", object="bad", kind="materialized view") == 1


def test_what_spark_did(db: Database, monkeypatch: pytest.MonkeyPatch, value: Scraped) -> None:
    """That the engine counts is tested with Spark, in tests/dataflow/test_job.py."""
    monkeypatch.setattr(db.facts, "spark", lambda: {"tick": (2, 14, 900), "load": (1, 2, 0)})
    assert value("spark_jobs_total", stage="tick") == 2
    assert value("spark_tasks_total", stage="tick") == 14
    assert value("spark_shuffled_bytes_total", stage="tick") == 900
    assert value("spark_jobs_total", stage="load") == 1


def test_a_source_that_reads_and_falls_behind(db: Database, opener: Opener, value: Scraped) -> None:
    topic = opener.kafka.create_topic(2)
    db.execute(
        f"CREATE SOURCE s (id BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON "
        "WITH (RETAIN HISTORY FOR '1h')"
    )
    for n in range(3):
        opener.kafka.produce(topic, n % 2, Record(b'{"id": 1}', None))
        tick(opener, db)
    opener.kafka.produce(topic, 0, Record(b"no", None))
    tick(opener, db)
    assert value("source_records_total", source="s") == 4
    assert value("source_bytes_total", source="s") > 0
    assert value("source_errors_total", source="s") == 1
    assert value("source_bindings", source="s") >= 4
    assert value("source_state", source="s", state="running") == 1
    intake = next(iter(db._core.intakes._intakes.values()))
    intake.upstream = type(next(iter(intake.frontier))).frontier({0: 12, 1: 1})
    opener.clock.advance(70_000)
    assert value("source_lag_records", source="s") == 9
    assert 70 <= value("source_lag_seconds", source="s") <= 72
    assert value("source_state", source="s", state="loading") == 1
    db.facts.faults.look()
    assert value("object_errors", object="s", kind="source") == 1


def test_ticks_and_what_they_keep(db: Database, opener: Opener, value: Scraped) -> None:
    db.execute("INSERT INTO t VALUES (1, 7, NULL), (2, 7, NULL)")
    tick(opener, db)
    ticks = value("ticks_total", timeline="EpochMilliseconds", place="driver")
    rows = value("tick_rows_total", phase="gather")
    db.execute("INSERT INTO t VALUES (3, 8, NULL)")
    tick(opener, db)
    assert value("ticks_total", timeline="EpochMilliseconds", place="driver") == ticks + 1
    assert value("tick_rows_total", phase="gather") == rows + 1
    assert value("tick_duration_seconds_count", phase="total") >= ticks
    assert value("object_changed_rows_total", object="t") == 3
    assert value("arrangement_records", object="t", operator="collection") == 3
    assert value("arrangement_bytes", object="t", operator="collection") > 0
    assert value("arrangement_runs", object="t", operator="collection") >= 1
    opener.clock.advance(40_000)
    assert 39 <= value("timeline_lag_seconds", timeline="EpochMilliseconds") <= 41
    assert 39 <= value("object_lag_seconds", object="m") <= 41
    size = value("state_disk_size_bytes")
    assert 0 < value("state_disk_free_bytes") < size


def test_what_is_under_way(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = Gauges()
    value = Scraped(db, gauges)
    assert value("info") == 1
    gauges.requests, gauges.streams = 5, 3
    gauges.answer("/api/sql", 403)
    assert value("connections", protocol="http") == 5
    assert value("http_streams") == 3
    assert value("http_requests_total", path="/api/sql", status="403") == 1
    assert value("merges_running") == 0
    monkeypatch.setattr(type(db), "merging", property(lambda _: 2))
    assert value("merges_running") == 2
    source = SourceFacts("d", "running", 0, 0, 0, None, 0, 1, True, lag_bytes=77)
    monkeypatch.setattr(db.facts, "sources", lambda: [source])
    assert value("source_lag_bytes", source="d") == 77
    sink = SinkFacts("s", "running", None, 0, 0, 0, 0, 41, None)
    monkeypatch.setattr(db.facts, "sinks", lambda: [sink])
    assert value("sink_in_flight_messages", sink="s") == 41


def test_every_family_has_a_test_of_its_value() -> None:
    """A metric that is always 0 would not be noticed else."""
    text = Path(__file__).read_text(encoding="utf-8")
    asked = set(re.findall(r'value\(\s*"(\w+?)(?:_count)?"', text))
    assert {f.name.removeprefix("reclock_") for f in FAMILIES} <= asked
