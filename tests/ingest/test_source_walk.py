"""Random walks of all that can happen to sources, against a fold of the topics by the bindings.

A walk mixes records of any kind on any partition, transactions that are open, committed or
aborted, new partitions, ticks with a clock that goes either way, a broker that stops, sources
and views that come and go, changed settings, subscriptions, restarts, and failures at any
failpoint, after which the process is used on or dies.

The model knows only the topics and ``reclock.bindings``. What is checked, at every step:

- P2: an offset that had a time has the same one, or the since of folded bindings;
- P3, P1: sources and views hold exactly the records bound so far, folded by the envelope, at
  the latest time and at times that are kept; so does whoever follows them;
- nothing is bound that is not committed, and in the end everything is.

``RECLOCK_SEED=n`` runs one walk again.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter

import pytest

from engines.task_engine import LoopEngine, TaskModel
from reclock.connectors.faults import NO_KEY, NO_VALUE, UNDECODABLE
from reclock.engine.place import segments_of
from reclock.errors import Error, Unreadable
from reclock.testing.failpoints import NAMES, FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

STEPS = 70
SEEDS = [int(os.environ["RECLOCK_SEED"])] if "RECLOCK_SEED" in os.environ else range(6)
POINTS = [n for n in NAMES if n.startswith(("durable.", "arrangement.", "tick.", "ingest."))]
DDL_POINTS = [n for n in NAMES if n.startswith(("durable.", "ddl.", "tick."))]

SOURCES = {
    "n": "FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o",
    "i": "FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o WITH (on_error = 'inline')",
    "u": "FORMAT JSON INCLUDE PARTITION AS p, OFFSET AS o ENVELOPE UPSERT",
}
VIEWS = {
    "all": ("SELECT * FROM {s}", lambda rows: rows),
    "count": (
        "SELECT count(*) AS n FROM {s}",
        lambda rows: Counter({(rows.total(),): 1}),
    ),
    "by": (
        "SELECT p, count(*) AS n FROM {s} GROUP BY p",
        lambda rows: Counter(Counter(row[2] for row in rows.elements()).items()),
    ),
}
KEYS = 5
FAULTS = {UNDECODABLE, NO_VALUE, NO_KEY}
OPTIONS = ("", "max_rows_per_tick = 2", "timestamp_interval = '3s'", "retain_history = '9s'")


class Broken(Exception):
    """The rows cannot be read: some record is an error."""


class Source:
    """What the walk knows of a source, besides what it asks."""

    def __init__(self, name, kind, topic, option, first):
        self.name, self.kind, self.topic = name, kind, topic
        self.own = "timestamp_interval" in option
        self.first = first if kind == "u" else ()
        """What belongs to the snapshot."""
        self.times = {}
        self.since = 0
        """To when bindings are folded: before that, nobody knows."""
        self.views = {}

    def rows(self, entries, time):
        """Fold the records that are bound to times up to ``time``."""
        bound = sorted(
            (at, offset, partition, record)
            for (partition, offset), record in entries.items()
            if (at := self.times.get((partition, offset))) is not None and at <= time
        )
        return (self.upserted if self.kind == "u" else self.added)(bound)

    def added(self, bound):
        rows = Counter()
        for _, offset, partition, record in bound:
            value, fault = decoded(record.value)
            if fault and self.kind == "n":
                raise Broken
            error = () if self.kind == "n" else (fault,)
            rows[(*value, partition, offset, *error)] += 1
        return rows

    def upserted(self, bound):
        held = {}
        for _, offset, partition, record in bound:
            if record.key is None:
                raise Broken
            value, fault = decoded(record.value)
            held[record.key] = None if record.value is None else (value, fault, partition, offset)
        rows = Counter()
        for key, found in held.items():
            if found is not None:
                value, fault, partition, offset = found
                if fault:
                    raise Broken
                rows[int(key), value[1], partition, offset] += 1
        return rows


def decoded(value):
    if value is None or not value.startswith(b"{"):
        return (None, None), True
    made = json.loads(value)
    return (made["id"], made["x"]), False


class Walk:
    def __init__(self, opener, seed):
        self.random = random.Random(seed)
        self.opener, self.kafka = opener, opener.kafka
        self.topics = {"a": self.kafka.create_topic(2), "k": self.kafka.create_topic(2)}
        self.size = dict.fromkeys(self.topics, 2)
        self.open = []
        self.sources = {}
        self.following = {}
        self.made = 0
        self.read_at = 0
        self.db = opener()
        self.execute("ALTER SYSTEM SET logical_compaction_window = '20s'")

    def run(self):
        actions = [
            (12, self.produce), (4, self.begin), (4, self.end), (1, self.grow),
            (14, self.tick), (2, self.jump), (2, self.stop), (4, self.fail), (3, self.restart),
            (4, self.create), (1, self.drop), (4, self.view), (1, self.drop_view),
            (2, self.settings), (3, self.follow), (2, self.damage),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        self.create()
        for _ in range(STEPS):
            self.random.choices(choices, weights)[0]()
            self.check()
        self.finish()

    def execute(self, sql):
        return self.db.execute(sql)

    # The broker.

    def records(self, topic):
        for _ in range(self.random.randint(1, 4)):
            key = self.random.randrange(KEYS)
            where = self.random.randrange(self.size[topic]) if topic == "a" else key % 2
            self.made += 1
            value = json.dumps({"id": self.made, "x": "é" * (self.made % 3)}).encode()
            lot = self.random.random()
            if lot < 0.04:
                value = self.random.choice([b"nope", b"\xff", b"[1]"])
            elif lot < 0.1:
                value = None
            name = None if topic == "a" or self.random.random() < 0.005 else str(key).encode()
            yield where, Record(value, name)

    def produce(self):
        topic = self.random.choice(list(self.topics))
        if self.kafka.running:
            for partition, record in self.records(topic):
                self.kafka.produce(self.topics[topic], partition, record)

    def begin(self):
        if self.kafka.running and len(self.open) < 2:
            self.open.append(self.kafka.begin())
            for partition, record in self.records("a"):
                self.open[-1].produce(self.topics["a"], partition, record)

    def end(self):
        if self.open and self.kafka.running:
            transaction = self.open.pop(self.random.randrange(len(self.open)))
            self.random.choice([transaction.commit, transaction.abort])()

    def grow(self):
        topic = self.random.choice(list(self.topics))
        self.size[topic] = min(5, self.size[topic] + 1)
        self.kafka.add_partitions(self.topics[topic], self.size[topic])

    def stop(self):
        self.kafka.running = not self.kafka.running

    def damage(self):
        """Take a topic from under a source of its own: it fails for good, alone."""
        if not self.kafka.running or self.random.random() < 0.5:
            return
        self.catch_up()
        topic = self.kafka.create_topic(1)
        self.kafka.produce(topic, 0, *(Record(b'{"id": 1, "x": ""}') for _ in range(4)))
        self.define("lost", "n", topic, "")
        self.tick(1_000)
        how = self.random.choice(["delete", "recreate", "truncate"])
        self.kafka.produce(topic, 0, *(Record(b'{"id": 2, "x": ""}') for _ in range(4)))
        if how == "delete":
            self.kafka.delete_topic(topic)
        elif how == "recreate":
            self.kafka.recreate_topic(topic, 1)
        else:
            self.kafka.truncate(topic, 0, 7)
        point = self.random.choice(POINTS)
        self.opener.clock.advance(1_000)
        try:
            with armed({point: "raise"}):
                self.db.tick()
        except (FailpointRaised, Error):
            self.recover()
        self.tick(1_000)
        self.tick(1_000)
        bound = self.execute("SELECT max(\"offset\") FROM reclock.bindings WHERE source = 'lost'")
        assert bound.rows in ([(0,)], [(4,)], [(None,)]), (how, point)
        found = self.execute("SELECT detail FROM reclock.errors WHERE object = 'lost'").rows
        assert len(found) == 1, (how, point)
        assert "rows" not in found[0][0], (how, point)
        with pytest.raises(Error) as caught:
            self.execute("SELECT * FROM lost")
        assert caught.value.code == "55000"
        self.execute("DROP SOURCE lost")

    def entries(self, topic):
        """Return what is committed of a topic, before the first transaction that is open."""
        running, self.kafka.running = self.kafka.running, True
        try:
            described = self.kafka.described(self.topics[topic])
            logs = {p: self.kafka.partition(self.topics[topic], p) for p in described.partitions}
        finally:
            self.kafka.running = running
        return {
            (p, e.offset): e.record
            for p, log in logs.items()
            for e in log.entries
            if e.visible("read_committed") and e.offset < log.stable("read_committed")
        }

    # Time.

    def tick(self, ms=None):
        self.opener.clock.advance(
            ms or self.random.choice([0, 1, 300, 1_000, 1_000, 1_000, 4_000, 30_000])
        )
        self.db.tick()

    def catch_up(self):
        """Let the clock be where it has been already."""
        uppers = (state.upper for state in self.db._core.world.timelines.values())
        self.opener.clock.set(max(self.opener.clock.now_ms(), *uppers, 0))

    def jump(self):
        now = self.opener.clock.now_ms()
        self.opener.clock.set(max(0, now + self.random.choice([-20_000, -700, 50_000])))

    def restart(self):
        self.following.clear()
        self.db = self.opener.reopened(self.db)

    def recover(self):
        """Die, or go on."""
        if self.random.random() < 0.5:
            self.restart()

    def fail(self):
        point = self.random.choice(POINTS)
        try:
            with armed({point: "raise"}):
                self.tick()
        except (FailpointRaised, Error):
            self.recover()

    # Definitions.

    def create(self):
        free = [n for n in ("s", "t", "w") if n not in self.sources]
        if not free:
            return
        kind = self.random.choice(list(SOURCES))
        topic = "k" if kind == "u" else self.random.choice(list(self.topics))
        name = free[0]
        if not self.kafka.running:
            with pytest.raises(Error):
                self.define(name, kind, self.topics[topic], "")
            return
        option = self.random.choice(OPTIONS)
        first = self.entries(topic).keys()
        if self.random.random() < 0.3:
            try:
                with armed({self.random.choice(DDL_POINTS): "raise"}):
                    self.define(name, kind, self.topics[topic], option)
            except (FailpointRaised, Error):
                self.recover()
            if name not in [row[0] for row in self.execute("SHOW SOURCES").rows]:
                return
        else:
            self.define(name, kind, self.topics[topic], option)
        self.sources[name] = Source(name, kind, topic, option, first)

    def define(self, name, kind, topic, option):
        columns = "(id BIGINT PRIMARY KEY, x TEXT)" if kind == "u" else "(id BIGINT, x TEXT)"
        rest = SOURCES[kind]
        if option:
            rest = f"{rest[:-1]}, {option})" if "WITH" in rest else f"{rest} WITH ({option})"
        self.execute(f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b' TOPIC '{topic}' {rest}")

    def drop(self):
        if len(self.sources) > 1:
            name = self.random.choice(list(self.sources))
            self.execute(f"DROP SOURCE {name} CASCADE")
            source = self.sources.pop(name)
            for gone in (name, *source.views):
                if (open_ := self.following.pop(gone, None)) is not None:
                    open_[0].close()

    def view(self):
        if not self.sources:
            return
        source = self.random.choice(list(self.sources.values()))
        kind = self.random.choice(list(VIEWS))
        name = f"{source.name}_{kind}"
        if name not in source.views:
            sql = VIEWS[kind][0].format(s=source.name)
            self.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
            source.views[name] = VIEWS[kind][1]
        elif self.random.random() < 0.3:
            self.execute(f"CREATE INDEX ON {source.name} (p)")

    def drop_view(self):
        views = [(s, v) for s in self.sources.values() for v in s.views]
        if views:
            source, name = self.random.choice(views)
            self.execute(f"DROP MATERIALIZED VIEW {name}")
            del source.views[name]
            if (open_ := self.following.pop(name, None)) is not None:
                open_[0].close()

    def settings(self):
        name, values = self.random.choice(
            [
                ("logical_compaction_window", ["1ms", "2s", "20s", "60s"]),
                ("timestamp_interval", ["1s", "250ms", "2s"]),
            ]
        )
        self.execute(f"ALTER SYSTEM SET {name} = '{self.random.choice(values)}'")
        if self.sources and self.random.random() < 0.3:
            source = self.random.choice(list(self.sources))
            self.execute(f"ALTER SOURCE {source} SET (RETAIN HISTORY FOR '5s')")

    # Checks.

    def check(self):
        self.check_bindings()
        for source in self.sources.values():
            names = [source.name, *source.views]
            self.compare(source, self.random.choice(names), None)
            name = self.random.choice(names)
            since, upper = self.bounds(name)
            since = max(since, source.since)
            times = [t for t in {*source.times.values(), since, upper - 1} if since <= t < upper]
            if times:  # there are none while it is loading
                self.compare(source, name, self.random.choice(times))
        self.fetch()

    def check_bindings(self):
        found = {}
        first = {}
        for name, time, partition, offset in self.execute("SELECT * FROM reclock.bindings").rows:
            found.setdefault(name, {}).setdefault(int(partition), []).append((time, offset))
            first[name] = min(time, first.get(name, time))
        for source in self.sources.values():
            entries = self.entries(source.topic)
            times = {}
            for partition, steps in found.get(source.name, {}).items():
                steps.sort()
                offsets = [offset for _, offset in steps]
                assert offsets == sorted(offsets), "not monotone"
                for p, offset in entries:
                    if p == partition:
                        at = next((t for t, stop in steps if stop > offset), None)
                        if at is not None:
                            times[p, offset] = at
            since = first.get(source.name)
            for place, before in source.times.items():
                now = times.get(place)
                assert now == before or (now == since and now > before), (
                    source.name, place, before, now, since,
                )  # fmt: skip
            source.times = times
            if since is not None:
                source.since = since
                assert since <= self.bounds(source.name)[0], "folded further than it may be read"
                later = {at for at in times.values() if at > since}
                assert not source.own or all(at % 3_000 == 0 for at in later), "off its grid"
                assert len({times.get(place) for place in source.first}) <= 1, "in pieces"

    def bounds(self, name):
        (row,) = self.execute(
            f"SELECT since, upper FROM reclock.frontiers WHERE object = '{name}'"
        ).rows
        return row

    def expected(self, source, name, time):
        rows = source.rows(self.entries(source.topic), time)
        return +(source.views[name](rows) if name in source.views else rows)

    def compare(self, source, name, time):
        query = f"SELECT * FROM {name}" + ("" if time is None else f" AS OF {time}")
        try:
            result = self.execute(query)
        except Error as error:
            if isinstance(error, Unreadable) and "still loading" in error.message:
                self.check_bindings()
                waits = not source.first or not source.first <= source.times.keys()
                assert waits, "all is there, and it waits"
                return
            if error.code not in FAULTS:
                raise
            time = self.bounds(name)[1] - 1 if time is None else time
            self.check_bindings()
            with pytest.raises(Broken):
                self.expected(source, name, time)
            return
        if time is None:
            assert result.timestamp >= self.read_at, "a read went back"
            time = self.read_at = result.timestamp
            self.check_bindings()
        assert shown(result.rows, source, name) == self.expected(source, name, time), (name, time)

    # Following.

    def follow(self):
        if self.sources:
            source = self.random.choice(list(self.sources.values()))
            name = self.random.choice([source.name, *source.views])
            if name not in self.following:
                opened = self.db.subscribe(f"SUBSCRIBE TO {name} WITH (PROGRESS)")
                self.following[name] = [opened, [], source]

    def fetch(self):
        for name, (subscription, told, source) in list(self.following.items()):
            progress = None
            try:
                while came := subscription.fetch(timeout=0):
                    told += [update for update in came if not update.progressed]
                    progress = max([u.timestamp for u in came if u.progressed], default=progress)
            except Error as error:
                if error.code not in FAULTS:
                    raise
                subscription.close()
                del self.following[name]
                continue
            if progress is not None:
                self.check_bindings()
                rows = Counter()
                for update in told:
                    assert update.timestamp <= progress
                    rows[tuple(update.row)] += update.diff
                rows = shown((+rows).elements(), source, name)
                assert rows == self.expected(source, name, progress), (name, progress)

    # The end.

    def finish(self):
        self.kafka.running = True
        for transaction in self.open:
            transaction.commit()
        self.execute("ALTER SYSTEM SET logical_compaction_window = '60s'")
        self.catch_up()
        for _ in range(200):
            self.tick(4_000)
            self.check_bindings()
            if all(s.times.keys() == self.entries(s.topic).keys() for s in self.sources.values()):
                break
        for source in self.sources.values():
            assert source.times.keys() == self.entries(source.topic).keys(), "something is lost"
        self.restart()
        self.check_bindings()
        for source in self.sources.values():
            for name in (source.name, *source.views):
                since, upper = self.bounds(name)
                since = max(since, source.since)
                for time in sorted({*source.times.values(), since, upper - 1}):
                    if since <= time < upper:
                        self.compare(source, name, time)
        assert self.db.check() == []


def shown(rows, source, name):
    """Return rows with whether there is an error in place of its text."""
    if source.kind == "i" and name in (source.name, f"{source.name}_all"):
        return Counter((*row[:-1], row[-1] is not None) for row in rows)
    return Counter(rows)


@pytest.fixture(autouse=True)
def small_pulls(monkeypatch):
    monkeypatch.setattr("reclock.ingest.intake.PULL_ROWS", 2)
    monkeypatch.setattr("reclock.engine.source_bindings.SLACK", 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk(make_opener, seed):
    Walk(make_opener(), seed).run()


def walked_with_tasks(opener, seed, engine, monkeypatch):
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 3)
    opener.engine = engine
    walk = Walk(opener, seed)
    walk.run()
    core = walk.db._core
    left = {name for name in core.segments.names() if name.startswith("staged-")}
    assert left <= core.named(), "a staged file that no collection has adopted"


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_walk_with_tasks_that_read(make_opener, seed, monkeypatch):
    walked_with_tasks(make_opener(), seed, TaskModel, monkeypatch)


@pytest.mark.parametrize("seed", SEEDS[3:5])
def test_a_walk_with_ticks_that_are_jobs(make_opener, seed, monkeypatch):
    opener = make_opener()
    walked_with_tasks(opener, seed, lambda: LoopEngine(segments_of(opener.path)), monkeypatch)


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("seed", range(200, 240))
def test_many_walks_with_tasks_that_read(make_opener, seed, monkeypatch):
    walked_with_tasks(make_opener(), seed, TaskModel, monkeypatch)


@pytest.mark.slow(seconds=5)
@pytest.mark.parametrize("seed", range(300, 320))
def test_many_walks_with_ticks_that_are_jobs(make_opener, seed, monkeypatch):
    opener = make_opener()
    walked_with_tasks(opener, seed, lambda: LoopEngine(segments_of(opener.path)), monkeypatch)


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_walks(make_opener, seed):
    Walk(make_opener(), seed).run()
