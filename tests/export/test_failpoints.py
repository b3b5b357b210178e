"""Every step of a sink fails, in every way, whatever it has to write: each change once, in order.

What the topic must have is computed here, from the statements and the times at which they
were committed, and compared message by message: time, key, value.
"""

from __future__ import annotations

import json
import random

import pytest

from reclock.connectors.kafka.cluster import Span
from reclock.testing import kafka_producer as fake
from reclock.testing.failpoints import FailpointRaised, armed

SINK = (
    "sink.begin.before", "sink.produce.after", "sink.progress.before", "sink.commit.before",
    "sink.commit.after", "sink.report.before", "sink.hold.before",
)  # fmt: skip
OTHERS = (
    "tick.compute.before", "tick.publish.before", "tick.publish.after", "durable.append.before",
    "durable.commit.before", "durable.commit.after", "durable.compact.before",
    "durable.compact.folded", "durable.compact.after", "write.append.after",
)  # fmt: skip
ACTIONS = ("crash", "error", "timeout", "fence")
SCENARIOS = ("data", "idle", "snapshot", "many")
WINDOWS = ("1ms", "1s")


class Crash(BaseException):
    """The process is gone: nothing is caught, nothing cleaned up."""


class World:
    """A table, a view of it, a sink of that, and what the sink must have written."""

    def __init__(self, opener, seed=0):
        self.opener = opener
        self.kafka = opener.kafka
        self.random = random.Random(seed)
        self.db = opener()
        self.db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        self.db.execute("CREATE MATERIALIZED VIEW m AS SELECT k, v FROM t WHERE v > 0")
        self.rows = {}
        self.sinks = 0
        self.expected = []
        self.hits = 0
        self.sink()

    # What is written, and what that means.

    def sink(self):
        """Replace the sink by one with a topic of its own, which begins with a snapshot."""
        if self.sinks:
            self.db.execute(f"DROP SINK s{self.sinks}")
        self.sinks += 1
        self.db.execute(
            f"CREATE SINK s{self.sinks} FROM m INTO KAFKA BROKER 'b:1' TOPIC 'out{self.sinks}' "
            "KEY (k) FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true)"
        )
        as_of = self.exporter.as_of
        shown = {k: v for k, v in self.rows.items() if v > 0}
        self.expected = [(as_of, k, v) for k, v in shown.items()]

    def write(self):
        """Change the table by one statement."""
        key, value = self.random.randrange(6), self.random.randrange(-3, 10)
        if key not in self.rows:
            text = f"INSERT INTO t VALUES ({key}, {value})"
        elif self.random.random() < 0.3:
            text, value = f"DELETE FROM t WHERE k = {key}", None
        else:
            text = f"UPDATE t SET v = {value} WHERE k = {key}"
        time = self.db.execute(text).timestamp
        old, new = self.rows.pop(key, None), value
        if new is not None:
            self.rows[key] = new
        before = old if old is not None and old > 0 else None
        after = new if new is not None and new > 0 else None
        if before != after:
            self.expected.append((time, key, after))

    def data(self):
        self.write()

    def idle(self):
        self.opener.clock.advance(15_000)

    def snapshot(self):
        self.sink()

    def many(self):
        self.kafka.running = False
        for _ in range(self.random.randrange(2, 6)):
            self.write()
            self.tick()
        self.kafka.running = True

    # What happens to it.

    @property
    def exporter(self):
        (found,) = self.db._core.exporters._exporters.values()
        return found

    def tick(self, ms=1_000):
        self.opener.clock.advance(ms)
        self.db.tick()

    def act(self, action):
        """Return what happens at a failpoint."""

        def crash():
            self.hits += 1
            raise Crash

        def error():
            self.hits += 1
            raise FailpointRaised("as it was told to")

        def timeout():
            self.hits += 1
            self.kafka.time_out(self.exporter._outlet.target.transactional_id)

        def fence():
            self.hits += 1
            self.exporter._outlet.open().fence()

        return {"crash": crash, "error": error, "timeout": timeout, "fence": fence}[action]

    def fail(self, point, action):
        """Tick, while a step fails; restart if that is what it takes."""
        try:
            with armed({point: self.act(action)}):
                self.tick()
        except (Crash, FailpointRaised):
            if action == "crash":
                self.db = self.opener.reopened(self.db)
        self.mend()

    def mend(self):
        """Restart a sink that stopped, which says why."""
        ((state, detail),) = self.db.execute(
            "SELECT state, detail FROM reclock.sink_status"
        ).rows  # fmt: skip
        if state == "failed":
            assert "another instance of this sink took over" in detail
            self.db = self.opener.reopened(self.db)

    def settle(self):
        """Go on, until everything is written that there is."""
        for _ in range(3):
            self.write()
            self.tick()
            self.mend()
        self.tick()

    def messages(self):
        cluster = self.kafka.cluster("read_committed")
        topic = f"out{self.sinks}"
        end = cluster.watermarks(topic, [0])[0].high
        found = []
        for batch in cluster.fetch(topic, [Span(0, 0, end)], ["key", "headers"]) if end else ():
            for row in batch.to_pylist():
                (header,) = row["headers"]
                value = row["value"] and json.loads(row["value"])["v"]
                found.append((int(header["value"]), json.loads(row["key"])["k"], value))
        return found

    def check(self):
        """The topic has what it must have: each once, in the order of the times."""
        found = self.messages()
        assert [time for time, _, _ in found] == [time for time, _, _ in self.expected]
        assert sorted(found, key=str) == sorted(self.expected, key=str)


CASES = [
    *((point, action) for point in SINK for action in ACTIONS),
    *((point, action) for point in OTHERS for action in ("crash", "error")),
    *(pytest.param(point, action, marks=pytest.mark.slow(seconds=2))
      for point in OTHERS for action in ("timeout", "fence")),
]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("point", "action"), CASES)
def test_every_failpoint(opener, point, action, window):
    world = World(opener)
    world.db.execute(f"ALTER SYSTEM SET logical_compaction_window = '{window}'")
    for scenario in SCENARIOS:
        before = world.hits
        getattr(world, scenario)()
        world.fail(point, action)
        assert world.hits > before or point not in SINK, "nothing happened"
        world.settle()
        world.check()
    assert world.db.check() == []


@pytest.mark.parametrize("point", SINK)
def test_a_failpoint_that_fails_every_time(opener, point):
    world = World(opener)
    for scenario in SCENARIOS:
        getattr(world, scenario)()
        for _ in range(4):
            world.fail(point, "crash")
        world.settle()
        world.check()


SEEDS = [
    *range(4),
    *(pytest.param(seed, marks=pytest.mark.slow(seconds=2)) for seed in range(4, 40)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_walk(make_opener, seed):
    print("seed", seed)
    opener = make_opener()
    world = World(opener, seed)
    chance = random.Random(seed)
    errors = (fake.RETRIABLE, fake.ABORTABLE, fake.FATAL)
    for _ in range(40):
        getattr(world, chance.choice(SCENARIOS))()
        fate = chance.randrange(7)
        if fate < 3:
            world.fail(chance.choice([*SINK, *OTHERS]), chance.choice(ACTIONS))
        elif fate == 3:
            step, error = (
                chance.choice(("init", "begin", "produce", "commit")),
                chance.choice(errors),
            )
            done = chance.random() < 0.5 and (step, error) != ("commit", fake.ABORTABLE)
            opener.outlets.faults.fail(step, error, done=done)
            world.tick()
            world.mend()
        elif fate == 4:
            world.db = opener.reopened(world.db)
        elif fate == 5:
            window = chance.choice(WINDOWS)
            world.db.execute(f"ALTER SYSTEM SET logical_compaction_window = '{window}'")
        else:
            world.tick()
    opener.outlets.faults.clear()
    world.settle()
    world.check()
    assert world.db.check() == []
