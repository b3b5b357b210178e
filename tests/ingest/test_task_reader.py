"""Tasks of a real Spark read topics, files and generators; ticks bind what the driver never saw."""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import replace
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reclock
from debezium import Change, Connector
from reclock import ManualClock
from reclock.catalog.item import Source
from reclock.errors import Error, Interrupted, Unreadable
from reclock.ingest.intake import Intake
from reclock.ingest.task_reader import TaskReader
from reclock.spark import staging as stage_job
from reclock.testing.kafka_upstream import Record

pytestmark = [pytest.mark.spark]


@pytest.fixture
def driver_reads(monkeypatch):
    """What the driver has read by itself, in batches."""
    found = []
    counted = Intake._count
    monkeypatch.setattr(Intake, "_count", lambda *given: found.append(given[1]) or counted(*given))
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 400)
    monkeypatch.setattr("reclock.ingest.shares.LEAST", 100)
    return found


def check_views(db, views):
    """At every time that is bound, views have what their queries say."""
    times = db.execute("SELECT DISTINCT timestamp FROM reclock.bindings").rows
    uppers = dict(db.execute("SELECT object, since FROM reclock.frontiers").rows)
    for name, query in views.items():
        for time in sorted(time for (time,) in times if time >= uppers[name]):
            try:
                kept = sorted(db.execute(f"SELECT * FROM {name} AS OF {time}").rows)
            except Unreadable:  # a source of another timeline, or one that is loading
                continue
            assert kept == sorted(db.execute(f"{query} AS OF {time}").rows), (name, time)


def rows_of(n: int) -> list[Record]:
    return [
        Record(json.dumps({"id": i, "k": i % 7}).encode(), str(i % 50).encode()) for i in range(n)
    ]


@pytest.mark.kafka
def test_tasks_read_and_ticks_bind_what_they_wrote(kafka, tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 400)
    jobs = []
    read = stage_job.stage
    monkeypatch.setattr(
        "reclock.spark.engine.stage",
        lambda *given: jobs.append(given[3]) or read(*given),
    )
    topic = kafka.create_topic(3)
    for partition in range(3):
        kafka.produce(topic, partition, *rows_of(1_000))
    clock = ManualClock(1_000)
    where = f"FROM KAFKA BROKER '{kafka.address}' TOPIC '{topic}' FORMAT JSON"
    views = {
        "v": "SELECT k, count(*) AS n, sum(id) AS s FROM a GROUP BY k",
        "w": "SELECT count(*) AS n, sum(k * 2) AS s FROM u",
    }
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute(f"CREATE SOURCE a (id BIGINT, k INT) {where}")
        places = "INCLUDE PARTITION AS p, OFFSET AS o"
        db.execute(f"CREATE SOURCE u (id BIGINT, k INT) {where} {places}")
        for name, query in views.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for _ in range(6):
            clock.advance(1_000)
            db.tick()
        assert any(title == "read · a" for title in jobs)
        by_key = {k: [i for i in range(1_000) if i % 7 == k] for k in range(7)}
        expected = [(k, 3 * len(ids), 3 * sum(ids)) for k, ids in by_key.items()]
        assert sorted(db.execute("SELECT * FROM v").rows) == expected
        total = 3 * sum(2 * (i % 7) for i in range(1_000))
        assert db.execute("SELECT * FROM w").rows == [(3_000, total)]
        kafka.produce(topic, 0, *rows_of(500))
        clock.advance(1_000)
        db.tick()
        times = db.execute("SELECT DISTINCT timestamp FROM reclock.bindings WHERE source = 'a'")
        for time in sorted(time for (time,) in times.rows if time > 1_500):
            kept = sorted(db.execute(f"SELECT * FROM v AS OF {time}").rows)
            assert kept == sorted(db.execute(f"{views['v']} AS OF {time}").rows), time
        assert db.execute("SELECT count(*) FROM a").rows == [(3_500,)]
        left = {n for n in db._core.segments.names() if n.startswith("staged-")}
        assert left <= db._core.named()
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        assert db.execute("SELECT count(*) FROM a").rows == [(3_500,)]


@pytest.mark.kafka
def test_transactions_wait_in_files_and_are_released_by_reference(kafka, tmp_path, driver_reads):
    connector = Connector(kafka.create_topic(1), ["orders"], 3)
    topic = connector.topics["orders"] = kafka.create_topic(3)
    made = [
        connector.transaction(*(Change("orders", key, str(n)) for key in range(50)))
        for n in range(12)
    ]
    for message in [message for some in made for message in some][:-1]:  # the last has no END yet
        kafka.produce(message.topic, message.partition, message.record)
    clock = ManualClock(1_000)

    def checked(db, done, waiting):
        for _ in range(6):
            clock.advance(1_000)
            db.tick()
        found = {row[1] for row in db.execute("SELECT * FROM o").rows}
        assert found == {str(done - 1)}
        (source,) = db._core.world.catalog.of_kind(Source)
        held = db._core.intakes[source.id].statements
        assert (held.size, held.waiting) == (0, waiting)
        for number in range(1, done + 1):
            rows = db.execute(f"SELECT count(*), min(x), max(x) FROM o AS OF {number}").rows
            assert rows == [(50, str(number - 1), str(number - 1))]

    with reclock.open(tmp_path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute(
            f"CREATE SOURCE o (id BIGINT PRIMARY KEY, x TEXT) FROM KAFKA BROKER '{kafka.address}' "
            f"TOPIC '{topic}' FORMAT JSON ENVELOPE DEBEZIUM WITH (consistency_topic = "
            f"'{connector.metadata}', data_collection = 'public.orders', RETAIN HISTORY FOR '1 h')"
        )
        checked(db, 11, 50)
    end = made[-1][-1]
    kafka.produce(end.topic, end.partition, end.record)
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        checked(db, 12, 0)
        assert not {n for n in db._core.segments.names() if n.startswith("staged-")}
        assert db.check() == []
    assert sum(len(batch) for read in driver_reads for batch in read) == 24  # BEGIN and END


def test_files_and_generators_never_pass_the_driver(tmp_path, driver_reads):
    home = tmp_path / "in"
    for name in ("lines", "parquet"):
        (home / name).mkdir(parents=True)
    lines = [f"{i},{'x' * (i % 90)}" for i in range(2_000)]
    (home / "lines" / "a.csv").write_text("id,x\n" + "".join(f"{line}\n" for line in lines))
    packed = "id,x\n" + "".join(f"{line}\n" for line in lines[:700])
    (home / "lines" / "b.csv.gz").write_bytes(gzip.compress(packed.encode()))
    pq.write_table(pa.table({"id": range(1_500)}), home / "parquet" / "p", row_group_size=200)
    clock = ManualClock(1_000)
    views = {
        "v": "SELECT count(*) AS n, sum(id) AS s, sum(length(x)) AS l FROM f",
        "w": "SELECT count(*) AS n, sum(id) AS s FROM p",
        "x": "SELECT count(*) AS n, sum(counter) AS s FROM c",
        "y": "SELECT from_account, count(*) AS n FROM b GROUP BY from_account",
    }
    with reclock.open(tmp_path / "state", clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        where = f"FROM DIRECTORY '{home}"
        db.execute(f"CREATE SOURCE f (id INT, x TEXT) {where}/lines' FORMAT CSV WITH (header)")
        db.execute(f"CREATE SOURCE p (id BIGINT) {where}/parquet' FORMAT PARQUET")
        db.execute(
            "CREATE SOURCE c FROM LOAD GENERATOR COUNTER (MAX_CARDINALITY 50, EVENTS PER TICK 600)"
        )
        db.execute("CREATE SOURCE b FROM LOAD GENERATOR BANK (EVENTS PER TICK 700)")
        for name, query in views.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for nth in range(4):
            clock.advance(1_000)
            db.tick()
            if nth == 2:
                with (home / "lines" / "a.csv").open("a") as file:
                    file.write("7,y\n8,z\n")
        check_views(db, views)
        total = sum(range(2_000)) + sum(range(700)) + 15
        length = sum(i % 90 for i in [*range(2_000), *range(700)]) + 2
        assert db.execute("SELECT * FROM v").rows == [(2_702, total, length)]
        assert db.execute("SELECT * FROM w").rows == [(1_500, sum(range(1_500)))]
        assert db.execute("SELECT n FROM x").rows == [(50,)]
        status = dict(db.execute("SELECT source, rows FROM reclock.source_status").rows)
        assert (status["f"], status["p"]) == (2_702, 1_500)
        left = {n for n in db._core.segments.names() if n.startswith("staged-")}
        assert left <= db._core.named()
    assert sum(batch.num_rows for batches in driver_reads for batch in batches) == 0


@pytest.mark.kafka
def test_bad_records_snapshots_and_supplied_times_never_pass_the_driver(
    kafka, tmp_path, driver_reads
):
    topic = kafka.create_topic(2)
    made = rows_of(1_000)
    bad = {100, 555}
    for partition in range(2):
        kafka.produce(topic, partition, *(
            Record(b"nope", r.key) if i in bad else r for i, r in enumerate(made)
        ))  # fmt: skip
    clock = ManualClock(1_000)
    where = f"FROM KAFKA BROKER '{kafka.address}' TOPIC '{topic}' FORMAT JSON"
    keyed = "(key TEXT PRIMARY KEY, id BIGINT, k INT)"
    views = {
        "v": "SELECT k, count(*) AS n, sum(id) AS s FROM a GROUP BY k",
        "w": "SELECT count(*) AS n, sum(id) AS s FROM u",
    }
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute("CREATE TABLE g (timestamp BIGINT, partition INT, offset BIGINT)")
        skip = "WITH (on_error = 'skip')"
        db.execute(f"CREATE SOURCE a (id BIGINT, k INT) {where} {skip}")
        db.execute(f"CREATE SOURCE u {keyed} {where} ENVELOPE UPSERT {skip}")
        db.execute(f"CREATE SOURCE o (id BIGINT, k INT) {where} WITH (on_error = 'stop')")
        kept = "WITH (on_error = 'skip', RETAIN HISTORY FOR '1 h')"
        db.execute(f"CREATE SOURCE s (id BIGINT, k INT) {where} RECLOCK USING g {kept}")
        for name, query in views.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.execute("INSERT INTO g VALUES " + ", ".join(
            f"({10 * n}, {p}, {min(1_000, 90 * n)})" for n in range(1, 13) for p in range(2)
        ))  # fmt: skip
        db.execute("INSERT INTO g VALUES (500, 0, 1000)")
        for _ in range(7):
            clock.advance(1_000)
            db.tick()
        check_views(db, views)
        good = [i for i in range(1_000) if i not in bad]
        assert db.execute("SELECT sum(n), sum(s) FROM v").rows == [(2 * len(good), 2 * sum(good))]
        assert db.execute("SELECT n FROM w").rows == [(50,)]
        last = {i % 50: i for i in good}
        assert db.execute("SELECT s FROM w").rows == [(sum(last.values()),)]
        letters = 'SELECT source, partition, "offset" FROM reclock.dead_letters'
        assert sorted(db.execute(letters).rows) == sorted(
            (name, str(p), i) for name in ("a", "s", "u") for p in range(2) for i in bad
        )
        with pytest.raises(Error, match="stopped at a record"):
            db.execute("SELECT * FROM o")
        for n in (1, 2, 7, 12):
            found = db.execute(f"SELECT count(*) FROM s AS OF {10 * n}").rows
            assert found == [(2 * sum(i < 90 * n for i in good),)], n
        left = {n for n in db._core.segments.names() if n.startswith("staged-")}
        assert left <= db._core.named()
        assert db.check() == []
    assert sum(batch.num_rows for batches in driver_reads for batch in batches) == 0


class Slow:
    """A read that would take minutes."""

    def __init__(self, marks):
        self.marks = marks

    def __call__(self, ranges):
        (self.marks / str(ranges[0].start)).touch()
        sleep(300)
        yield from ()


@pytest.mark.parametrize("ending", ["drop", "close"])
def test_a_large_read_ends_with_its_source(tmp_path, monkeypatch, ending):
    marks = tmp_path / "marks"
    marks.mkdir()
    made = TaskReader._stager
    slow = lambda *given, **more: replace(made(*given, **more), read=Slow(marks))  # noqa: E731
    monkeypatch.setattr(TaskReader, "_stager", slow)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("line\n" * 50)
    db = reclock.open(tmp_path / "state")
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute(f"CREATE SOURCE s (line TEXT) FROM DIRECTORY '{tmp_path / 'in'}' FORMAT TEXT")
    (source,) = db._core.world.catalog.of_kind(Source)
    intake = db._core.intakes[source.id]
    end = monotonic() + 60
    while not list(marks.iterdir()):
        assert monotonic() < end, "no task has begun"
        sleep(0.05)
    if ending == "drop":
        db.execute("DROP SOURCE s")
    else:
        closing = threading.Thread(target=db.close, daemon=True)
        closing.start()
    assert intake._pulling.acquire(timeout=30), "the read goes on"
    intake._pulling.release()
    assert isinstance(intake.stall, Interrupted)
    if ending == "close":
        closing.join(30)
        assert not closing.is_alive()
    else:
        left = [name for name in db._core.segments.names() if name.startswith("staged-")]
        assert left == []
        db.close()
