"""The same sources read by tasks and by the driver: the same rows, errors and letters at all times.

Two databases follow the same files and topics with the same clock; the one reads in the driver, of
the other tasks read everything, and ticks are jobs. Files grow in the middle of lines, get new
members and neighbours; records are bad; processes restart, and the one whose tasks read dies at any
failpoint. ``RECLOCK_SEED=n`` runs one walk again.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from engines.task_engine import LoopEngine, TaskEngine
from reclock.catalog.item import Source
from reclock.connectors.generator.source import GeneratorSource
from reclock.engine.place import segments_of
from reclock.errors import Error
from reclock.ingest.pump import Pump
from reclock.remap.batch import Range
from reclock.testing.failpoints import NAMES, FailpointRaised, armed
from reclock.testing.kafka_upstream import Record
from reclock.time.timestamp import Timestamp

STEPS = 40
SEEDS = [int(os.environ["RECLOCK_SEED"])] if "RECLOCK_SEED" in os.environ else range(4)
POINTS = [n for n in NAMES if n.startswith(("durable.", "tick.", "ingest.bind"))]
"""Not those at which reading fails: what is read again comes later (test_source_walk.py)."""

ROW = "(id BIGINT, x TEXT)"
KEYED = "(id BIGINT PRIMARY KEY, x TEXT)"
FILES = {
    "csv": f"{ROW} FROM FILE '{{home}}/a.csv' FORMAT CSV WITH (header = true)",
    "csv_skip": f"{ROW} FROM FILE '{{home}}/a.csv' FORMAT CSV WITH (header, on_error = 'skip')",
    "csv_stop": f"{ROW} FROM FILE '{{home}}/a.csv' FORMAT CSV WITH (header, on_error = 'stop')",
    "text": "(line TEXT) FROM DIRECTORY '{home}/lines' FORMAT TEXT",
    "parquet": f"{ROW} FROM DIRECTORY '{{home}}/parquet' FORMAT PARQUET",
}
TOPICS = {
    "skip": f"{ROW} {{topic}} FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o "
            "WITH (on_error = 'skip')",
    "stop": f"{ROW} {{topic}} FORMAT JSON INCLUDE OFFSET AS o WITH (on_error = 'stop')",
    "upsert": f"{KEYED} {{topic}} FORMAT JSON ENVELOPE UPSERT",
    "upsert_skip": f"{KEYED} {{topic}} FORMAT JSON ENVELOPE UPSERT WITH (on_error = 'skip')",
}  # fmt: skip


class Pair:
    """A database whose tasks read, and one whose driver does."""

    def __init__(self, make_opener, home, seed):
        self.random = random.Random(seed)
        self.home = home
        self.openers = [make_opener(), make_opener()]
        tasks, driver = self.openers
        tasks.engine = lambda: LoopEngine(segments_of(tasks.path))
        driver.engine = LocalEngine
        driver.kafka = self.kafka = tasks.kafka
        self.topic = self.kafka.create_topic(2)
        self.size, self.made = 2, 0
        self.has_failed = False
        self.files()
        self.dbs = [opener() for opener in self.openers]
        self.names = []
        self.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
        self.produce()

    def execute(self, sql):
        return [db.execute(sql).rows for db in self.dbs]

    def run(self):
        actions = [
            (8, self.grow_csv), (8, self.grow_lines), (3, self.grow_gzip), (3, self.add_parquet),
            (10, self.produce), (1, self.add_partition), (12, self.tick), (3, self.fail),
            (2, self.restart), (4, self.create),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        self.create()
        for _ in range(STEPS):
            self.random.choices(choices, weights)[0]()
        self.tick()
        self.tick()
        self.check()
        self.restart()
        self.tick()
        self.check()
        for db in self.dbs:
            assert db.check() == []
        assert not self.staged()

    # What is read.

    def files(self):
        for name in ("lines", "parquet"):
            (self.home / name).mkdir()
        (self.home / "a.csv").write_text("id,x\n")
        (self.home / "lines" / "a.txt").write_bytes(b"")

    def text(self):
        self.made += 1
        return f"x{self.made}" * self.random.choice([1, 1, 3, 30])

    def append(self, name, data):
        with (self.home / name).open("ab") as file:
            file.write(data)

    def grow_csv(self):
        lines = []
        for _ in range(self.random.randint(1, 8)):
            bad = self.random.random() < 0.04
            lines.append(f"{'nope' if bad else self.made},{self.text()}\n")
        self.append("a.csv", "".join(lines).encode())

    def grow_lines(self):
        name = self.random.choice(["a.txt", "b.txt", "c.txt"])
        lines = "".join(f"{self.text()}\n" for _ in range(self.random.randint(1, 6))).encode()
        self.append(f"lines/{name}", lines[: self.random.choice([len(lines), -1, -2])])

    def grow_gzip(self):
        lines = "".join(f"{self.text()}\n" for _ in range(self.random.randint(1, 6))).encode()
        self.append("lines/d.txt.gz", gzip.compress(lines))

    def add_parquet(self):
        table = pa.table({"x": [self.text() for _ in range(self.random.randint(1, 7))]})
        table = table.append_column("id", pa.array(range(len(table))))
        path = self.home / "parquet" / f"{self.made}.parquet"
        pq.write_table(table, f"{path}.tmp", row_group_size=3)
        os.rename(f"{path}.tmp", path)

    def produce(self):
        for _ in range(self.random.randint(1, 9)):
            key = self.random.randrange(5)
            value = json.dumps({"id": key, "x": self.text()}).encode()
            lot = self.random.random()
            if lot < 0.05:
                value = self.random.choice([b"nope", b"[]"])
            elif lot < 0.1:
                value = None
            self.kafka.produce(self.topic, key % self.size, Record(value, str(key).encode()))

    def add_partition(self):
        if self.size < 4:
            self.size += 1
            self.kafka.add_partitions(self.topic, self.size)

    # What happens.

    def create(self):
        kind = self.random.choice([*FILES, *TOPICS])
        if kind in self.names:
            return
        self.names.append(kind)
        topic = f"FROM KAFKA BROKER 'b' TOPIC '{self.topic}'"
        rest = {**FILES, **TOPICS}[kind].format(home=self.home, topic=topic)
        self.execute(f"CREATE SOURCE {kind} {rest}")
        if self.random.random() < 0.5:
            self.execute(f"CREATE MATERIALIZED VIEW {kind}_n AS SELECT count(*) AS n FROM {kind}")
            self.names.append(f"{kind}_n")

    def tick(self):
        for opener, db in zip(self.openers, self.dbs, strict=True):
            opener.clock.advance(1_000)
            db.tick()

    def fail(self):
        """Let the one whose tasks read die in a tick, and do it again.

        What one of them had read ahead would get a later time when it is read again: neither has.
        """
        self.restart()
        point = self.random.choice(POINTS)
        tasks, driver = self.openers
        tasks.clock.advance(1_000)
        driver.clock.advance(1_000)
        self.dbs[1].tick()
        try:
            with armed({point: "raise"}):
                self.dbs[0].tick()
        except (FailpointRaised, Error):
            self.has_failed = True
            self.dbs[0] = tasks.reopened(self.dbs[0])
        self.dbs[0].tick()

    def restart(self):
        self.dbs = [o.reopened(db) for o, db in zip(self.openers, self.dbs, strict=True)]
        self.has_failed = False

    def staged(self):
        core = self.dbs[0]._core
        names = set(core.segments.names()) - core.named()
        return [name for name in names if name.startswith("staged-")]

    # What must be.

    def check(self):
        bound, expected = map(
            Counter,
            self.execute("SELECT source, timestamp, partition, offset FROM reclock.bindings"),
        )
        times = sorted({row[1] for row in expected})
        last = {(row[0], row[2]): row[3] for row in sorted(expected, key=lambda row: row[1])}
        reached = {(row[0], row[2]): row[3] for row in sorted(bound, key=lambda row: row[1])}
        stopped = {"stop"}  # which of two partitions is read first is nobody's promise
        for place in last.keys() | reached.keys():
            if "stop" not in place[0]:  # a line that stops it begins after the one before
                assert reached.get(place) == last.get(place), place
        for name in self.names:
            for time in times:
                found, wanted = (self.rows(db, name, time) for db in self.dbs)
                if name.removesuffix("_n") in stopped and found != wanted:
                    continue
                assert found == wanted, (name, time)
        letters = (
            'SELECT source, partition, "offset", timestamp, value, key FROM reclock.dead_letters'
        )
        found, wanted = map(Counter, self.execute(letters))
        assert found == wanted
        if not self.has_failed:
            status = "SELECT source, rows, errors, bound, skipped, state FROM reclock.source_status"
            found, wanted = (
                {row for row in rows if "stop" not in row[0]} for rows in self.execute(status)
            )
            assert found == wanted

    def rows(self, db, name, time):
        try:
            return Counter(db.execute(f"SELECT * FROM {name} AS OF {time}").rows)
        except Error as error:
            return error.code


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 3)
    monkeypatch.setattr("reclock.ingest.shares.LEAST", 2)
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk(make_opener, tmp_path, seed):
    Pair(make_opener, tmp_path, seed).run()


@pytest.mark.slow(seconds=8)
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_walks(make_opener, tmp_path, seed):
    Pair(make_opener, tmp_path, seed).run()


# Load generators.

GENERATORS = {
    "c": ("counter", {"max_cardinality": "5", "events_per_tick": "7"}),
    "d": ("counter", {"events_per_tick": "11"}),
    "b": ("bank", {"seed": "3", "events_per_tick": "9"}),
    "p": ("auction", {"seed": "4", "relation": "person", "events_per_tick": "120"}),
}


@pytest.mark.parametrize("point", [None, *POINTS])
def test_generators_have_the_rows_of_their_events_at_every_time(opener, point):
    opener.engine = lambda: LoopEngine(segments_of(opener.path))
    db = opener()
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
    for name, (kind, options) in GENERATORS.items():
        given = ", ".join(f"{k} = '{v}'" for k, v in options.items())
        db.execute(f"CREATE SOURCE {name} FROM LOAD GENERATOR {kind.upper()} ({given})")
    for nth in range(5):
        opener.clock.advance(1_000)
        try:
            with armed({point: "raise"} if point is not None and nth % 2 else {}):
                db.tick()
        except FailpointRaised:
            db = opener.reopened(db)
    read = db.execute("SELECT sum(rows) FROM reclock.source_status").rows
    assert read[0][0] > 0
    for name, (kind, options) in GENERATORS.items():
        reader = GeneratorSource.open(kind, options, {"version": 1}).reader
        bound = db.execute(
            f"SELECT timestamp, offset FROM reclock.bindings WHERE source = '{name}'"
        ).rows
        assert len({offset for _, offset in bound}) >= 3
        for time, offset in bound:
            expected = Counter()
            for batch in reader.read([Range(0, 0, offset, Timestamp(0))]):
                *columns, diffs = (c.to_pylist() for c in batch.columns[2:])
                for row, diff in zip(zip(*columns, strict=True), diffs, strict=True):
                    expected[row] += diff
            found = Counter(db.execute(f"SELECT * FROM {name} AS OF {time}").rows)
            assert found == +expected, (name, time)


# Sources that stop.


@pytest.mark.parametrize(
    ("partitions", "bad"),
    [
        (1, {0: 0}), (1, {0: 1}), (1, {0: 8}),
        (2, {0: 3}), (2, {1: 7}), (2, {0: 5, 1: 4}), (2, {0: 0, 1: 0}), (2, {0: 4, 1: 19}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("envelope", ["none", "upsert"])
def test_a_source_stops_before_the_first_bad_record(opener, partitions, bad, envelope):
    opener.engine = lambda: LoopEngine(segments_of(opener.path))
    db = opener()
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
    topic = opener.kafka.create_topic(partitions)
    columns = KEYED if envelope == "upsert" else ROW
    db.execute(
        f"CREATE SOURCE s {columns} FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON "
        f"ENVELOPE {envelope} WITH (on_error = 'stop')"
    )
    opener.clock.advance(1_000)
    db.tick()
    for partition in range(partitions):
        for offset in range(20):
            number = 100 * partition + offset
            value = json.dumps({"id": number, "x": ""}).encode()
            value = b"nope" if bad.get(partition) == offset else value
            opener.kafka.produce(topic, partition, Record(value, str(number).encode()))
    for _ in range(4):
        opener.clock.advance(1_000)
        db.tick()
    bound = db.execute("SELECT partition, max(offset) FROM reclock.bindings GROUP BY partition")
    reached = {int(partition): offset for partition, offset in bound.rows}
    assert all(reached.get(partition, 0) <= offset for partition, offset in bad.items())
    assert any(reached.get(partition, 0) == offset for partition, offset in bad.items())
    with pytest.raises(Error, match="stopped at a record") as caught:
        db.execute("SELECT * FROM s")
    assert any(f"partition {p}, offset {o}" in str(caught.value.detail) for p, o in bad.items())
    last = max(t for (t,) in db.execute("SELECT timestamp FROM reclock.bindings").rows)
    expected = {(100 * p + o, "") for p, stop in reached.items() for o in range(stop)}
    assert set(db.execute(f"SELECT * FROM s AS OF {max(last, 2_000)}").rows) == expected
    left = {n for n in db._core.segments.names() if n.startswith("staged-")}
    assert left <= db._core.named()
    assert opener.reopened(db).check() == []


# Bounds.


@pytest.mark.parametrize("kind", ["lines", "topic"])
def test_a_tick_takes_no_more_than_it_may_and_no_more_is_staged(opener, tmp_path, kind):
    opener.engine = lambda: LoopEngine(segments_of(opener.path))
    db = opener()
    path = tmp_path / "a.txt"
    lines = [f"{i}\n" for i in range(100)]
    topic = opener.kafka.create_topic(1)

    def write(some):
        with path.open("a") as file:
            file.writelines(some)
        opener.kafka.produce(topic, 0, *(Record(line.strip().encode()) for line in some))

    write(lines[:10])
    where = f"FILE '{path}'" if kind == "lines" else f"KAFKA BROKER 'b' TOPIC '{topic}'"
    db.execute(f"CREATE SOURCE s (line TEXT) FROM {where} FORMAT TEXT WITH (max_rows_per_tick = 6)")
    (source,) = db._core.world.catalog.of_kind(Source)
    intake = db._core.intakes[source.id]
    staged = []
    for nth in range(40):
        opener.clock.advance(1_000)
        if nth == 5:
            write(lines[10:])
        while intake.pull():
            pass
        staged.append(intake._staging.rows)
        db.tick()
    starts = [i if kind == "topic" else len("".join(lines[:i])) for i in range(100)]
    bound = db.execute("SELECT timestamp, offset FROM reclock.bindings ORDER BY timestamp").rows
    counts = [sum(start < stop for start in starts) for _, stop in bound]
    assert counts[-1] == 100
    assert all(b - a <= 6 for a, b in pairwise(counts))
    assert len(counts) >= 100 // 6
    assert 0 < max(staged[5:]) <= 2 * 6  # how long lines are is known by then
    assert Counter(db.execute("SELECT * FROM s").rows) == Counter((str(i),) for i in range(100))


# Files that tasks do not have, and tasks that fail.


class Elsewhere(TaskEngine):
    """Tasks of another machine: there the files are ``other``, or not at all."""

    other = None
    asked = 0

    def stage(self, stager, shares, title, *, stop=None):
        type(self).asked += 1
        listing = replace(stager.read.reader.listing, path=str(self.other))
        reading = replace(stager.read, reader=replace(stager.read.reader, listing=listing))
        return super().stage(replace(stager, read=reading), shares, title, stop=stop)


@pytest.mark.parametrize("other", ["nowhere", "longer"])
def test_files_that_tasks_do_not_have_are_read_by_the_driver(opener, tmp_path, other, caplog):
    home = tmp_path / "in"
    home.mkdir()
    (tmp_path / "longer").mkdir()
    for nth in range(3):
        (home / f"{nth}.txt").write_text("a\nb\n")
        (tmp_path / "longer" / f"{nth}.txt").write_text("other\nlines\n")
    monkey = type("Apart", (Elsewhere,), {"other": tmp_path / other})
    opener.engine = monkey
    db = opener()
    db.execute(f"CREATE SOURCE s (line TEXT) FROM DIRECTORY '{home}' FORMAT TEXT")
    for _ in range(2):
        opener.clock.advance(1_000)
        db.tick()
        with (home / "0.txt").open("a") as file:
            file.write("c\nd\n")
    opener.clock.advance(1_000)
    db.tick()
    assert Counter(db.execute("SELECT line FROM s").rows) == {
        ("a",): 3, ("b",): 3, ("c",): 2, ("d",): 2,
    }  # fmt: skip
    assert monkey.asked == 1
    assert "do not have the files" in caplog.text


def test_what_a_failed_job_has_written_is_removed(opener):
    class Fails(TaskEngine):
        fails = True

        def stage(self, stager, shares, title, *, stop=None):
            made = super().stage(stager, shares, title, stop=stop)
            if self.fails:
                message = "an executor is gone"
                raise OSError(message)
            return made

    opener.engine = Fails
    db = opener()
    topic = opener.kafka.create_topic(1)
    opener.kafka.produce(topic, 0, *(Record(b"x") for _ in range(9)))
    db.execute(f"CREATE SOURCE s (x TEXT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT TEXT")
    for fails in (True, False):
        Fails.fails = fails
        opener.clock.advance(1_000)
        db.tick()
        left = {n for n in db._core.segments.names() if n.startswith("staged-")}
        assert left <= db._core.named()
    assert db.execute("SELECT count(*) FROM s").rows == [(9,)]


def test_one_reader_that_ends_removes_no_file_of_the_next(opener):
    opener.engine = TaskEngine
    db = opener()
    topic = opener.kafka.create_topic(1)
    opener.kafka.produce(topic, 0, *(Record(b"x") for _ in range(9)))
    db.execute(f"CREATE SOURCE s (x TEXT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT TEXT")
    (source,) = db._core.world.catalog.of_kind(Source)
    before = db._core.intakes[source.id]
    db._core.intakes._begin(source, db._core.world)
    after = db._core.intakes[source.id]
    before.pull()
    after.pull()
    before.close()
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT count(*) FROM s").rows == [(9,)]


# Dead letters, of which only the last stay.

sizes = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, 1, 5, 20, 60])), max_size=12),
    min_size=1,
    max_size=4,
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sizes, st.integers(1, 6), st.sampled_from([30, 10**6]))
@example([[(0, 1), (0, 1)]], 2, 30)
def test_the_letters_that_stay_are_those_of_the_driver(make_opener, ticks, most, most_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reclock.ingest.shares.SLICE", 3)
        for module in (
            "reclock.engine.dead_letters",
            "reclock.ingest.task_reader",
        ):
            patch.setattr(f"{module}.MOST_LETTERS", most)
            patch.setattr(f"{module}.MOST_BYTES", most_bytes)
        tasks, driver = openers = make_opener(), make_opener()
        tasks.engine, driver.engine, driver.kafka = TaskEngine, LocalEngine, tasks.kafka
        topic = tasks.kafka.create_topic(3)
        dbs = [opener() for opener in openers]
        for db in dbs:
            db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
            db.execute("CREATE TABLE one (a INT)")
            db.execute("INSERT INTO one VALUES (1)")
            db.execute(
                f"CREATE SOURCE s (id BIGINT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON "
                "WITH (on_error = 'skip')"
            )
        for records in ticks:
            for partition, size in records:
                value = b'{"id": 1}' if size is None else b"!" * size
                tasks.kafka.produce(topic, partition, Record(value))
            for opener, db in zip(openers, dbs, strict=True):
                opener.clock.advance(1_000)
                db.tick()
        times = {row[0] for row in dbs[1].execute("SELECT timestamp FROM reclock.bindings").rows}
        for time in sorted(time for time in times if time >= 2_000):
            found, wanted = (
                sorted(db.execute(
                    "SELECT d.number, d.timestamp, d.partition, d.offset, d.value, d.reason "
                    f"FROM reclock.dead_letters d CROSS JOIN one AS OF {time}"
                ).rows)
                for db in dbs
            )  # fmt: skip
            assert found == wanted, time
        assert [db.check() for db in dbs] == [[], []]
        for opener in openers:
            opener.close()
            opener._opened.clear()


# Snapshots.


def test_a_snapshot_is_in_files_with_the_last_record_of_every_key(opener, monkeypatch):
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 20)
    opener.engine = lambda: LoopEngine(segments_of(opener.path))
    db = opener()
    topic = opener.kafka.create_topic(1)
    for n in range(100):
        value = json.dumps({"id": n % 5, "x": f"x{n}"}).encode()
        opener.kafka.produce(topic, 0, Record(value, str(n % 5).encode()))
    db.execute(
        f"CREATE SOURCE s {KEYED} FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON "
        "ENVELOPE UPSERT WITH (max_rows_per_tick = 10)"
    )
    (source,) = db._core.world.catalog.of_kind(Source)
    intake = db._core.intakes[source.id]
    while intake.pull():
        (*_, chunk) = intake._staging._chunks
        assert not chunk.records
    assert intake.is_ready
    (chunk,) = intake._staging._chunks
    assert (chunk.rows, chunk.size) == (100, 0)
    assert sum(run.rows for piece in chunk.pieces for run in piece.runs) == 10 * 5
    opener.clock.advance(1_000)
    db.tick()
    assert sorted(db.execute("SELECT * FROM s").rows) == [(k, f"x{95 + k}") for k in range(5)]
    assert db.execute("SELECT rows FROM reclock.source_status").rows == [(100,)]


# Files and the life of sources.


def test_what_is_staged_stays_when_its_thread_has_nothing_more_to_read(opener):
    opener.engine = TaskEngine
    topic = opener.kafka.create_topic(1)
    values = [b"nope" if n == 30 else b'{"id": %d, "x": ""}' % n for n in range(50)]
    opener.kafka.produce(topic, 0, *map(Record, values))
    db = opener()
    db.execute(
        f"CREATE SOURCE s {ROW} FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON "
        "WITH (on_error = 'stop')"
    )
    (source,) = db._core.world.catalog.of_kind(Source)
    intake = db._core.intakes[source.id]
    pump = Pump("s", intake, lambda: 20, lambda: None)
    try:
        deadline = monotonic() + 30
        while intake.failure is None:
            assert monotonic() < deadline
            sleep(0.01)
        sleep(0.2)
        for _ in range(2):
            opener.clock.advance(1_000)
            db.tick()
        query = "SELECT state, bound FROM reclock.source_status"
        assert db.execute(query).rows == [("failed", 30)]
        left = {n for n in db._core.segments.names() if n.startswith("staged-")}
        assert left <= db._core.named()
    finally:
        pump.stop()
        pump.join(10)


def test_a_source_that_is_dropped_leaves_no_file(opener):
    opener.engine = TaskEngine
    topic = opener.kafka.create_topic(1)
    opener.kafka.produce(topic, 0, *(Record(b"x") for _ in range(50)))
    db = opener()
    db.execute(f"CREATE SOURCE s (x TEXT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT TEXT")
    (source,) = db._core.world.catalog.of_kind(Source)
    db._core.intakes[source.id].pull()
    assert [n for n in db._core.segments.names() if n.startswith("staged-")]
    db.execute("DROP SOURCE s")
    left = {n for n in db._core.segments.names() if n.startswith("staged-")}
    assert left <= db._core.named()
    assert not db._core.in_flight


class Weighs(TaskEngine):
    """Tasks read many bytes, and the driver few, however many records that is."""

    staged = ()
    noted = ()

    def reading_tasks(self, records, size=0):
        return 2 if size > 20_000 else 0

    def note_read(self, records, size, seconds):
        self.noted.append((records, size))

    def stage(self, stager, shares, title, *, stop=None):
        made = super().stage(stager, shares, title, stop=stop)
        self.staged.append(sum(piece.rows for piece in made))
        return made


@pytest.mark.parametrize(("columns", "envelope"), [(ROW, ""), (KEYED, "ENVELOPE UPSERT")])
def test_a_few_records_of_many_bytes_are_left_to_tasks(opener, monkeypatch, columns, envelope):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 4)
    monkeypatch.setattr(Weighs, "staged", [])
    monkeypatch.setattr(Weighs, "noted", [])
    opener.engine = Weighs
    db = opener()
    topic = opener.kafka.create_topic(1)
    values = [json.dumps({"id": n, "x": "x" * 1_000}).encode() for n in range(50)]
    records = [Record(value, json.dumps(n).encode()) for n, value in enumerate(values)]
    opener.kafka.produce(topic, 0, *records)
    db.execute(
        f"CREATE SOURCE s {columns} FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON {envelope}"
    )
    for _ in range(3):
        opener.clock.advance(1_000)
        db.tick()
    found = db.execute("SELECT count(*), count(DISTINCT id), min(length(x)) FROM s").rows
    assert found == [(50, 50, 1_000)]
    read = sum(rows for rows, _ in Weighs.noted)
    assert 0 < read < 30
    assert sum(size for _, size in Weighs.noted) >= read * 1_000
    assert sum(Weighs.staged) == 50 - read
