"""CDCv2 read by tasks and by the driver: the same rows, errors and ends at all times.

Two databases follow the same topic. In the one the driver reads, of the other tasks read everything
or much of it, ticks are jobs, and updates wait in files. A sender writes the updates of times in
any order, some of them twice, and progress; it may send what does not decode, or contradict itself.
Processes restart, and the one whose tasks read dies at any failpoint. ``RECLOCK_SEED=n`` runs one
walk again.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from itertools import pairwise

import pytest

from engines.local_engine import LocalEngine
from engines.task_engine import LoopEngine, TaskEngine
from reclock.engine.place import segments_of
from reclock.errors import Error
from reclock.testing.failpoints import NAMES, FailpointRaised, armed
from reclock.testing.kafka_upstream import Record

STEPS = 30
SEEDS = (
    [int(os.environ["RECLOCK_SEED"])]
    if "RECLOCK_SEED" in os.environ
    else [*range(2), *(pytest.param(n, marks=pytest.mark.slow(seconds=6)) for n in range(2, 60))]
)
POINTS = [n for n in NAMES if n.startswith(("durable.", "tick.", "ingest.", "arrangement."))]
KINDS = {
    "cdc": "(id BIGINT, x TEXT)",
    "keyed": "(id BIGINT, x TEXT, PRIMARY KEY (id) NOT ENFORCED)",
}
PARTITIONS = 2


class Sender:
    """A collection that changes, and what is stated of it; ``late`` statements are in no order."""

    def __init__(self, chance, errs):
        self.random = chance
        self.errs = errs
        self.time = self.stated = 0
        self.rows = Counter()
        self.history = {0: Counter()}
        self.is_right = not errs
        self.counts = Counter()
        self.queue = []
        self.sent = []

    def change(self):
        """Make a time with some updates."""
        self.time += self.random.randint(1, 3)
        made = Counter()
        for _ in range(self.random.choice([1, 3, 8, 40])):
            row = (self.random.randint(0, 9), self.random.choice(["a", "b", None]))
            there = self.rows[row] + made[row]
            made[row] += self.random.choice([-there, 1, 1, 2]) if there else 1
        if self.random.random() < self.errs / 2:
            made[self.random.randint(20, 99), "gone"] -= 1
        updates = [(*row, self.time, diff) for row, diff in made.items() if diff]
        self.rows.update(made)
        self.history[self.time] = +self.rows
        self.counts[self.time] += len(updates)
        if updates and self.random.random() < self.errs:
            wrong = list(self.random.choice(updates))
            wrong[self.random.choice([0, 3])] += 7
            updates.append(tuple(wrong))
        self.random.shuffle(updates)
        while updates:
            size = self.random.randint(1, 6)
            some, updates = updates[:size], updates[size:]
            self.put({"array": [
                {"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in some
            ]})  # fmt: skip

    def put(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.queue.append(data)
        self.sent.append(data)

    def state(self):
        """State progress up to now, in one piece or two."""
        end = self.time + 1
        cuts = sorted({self.stated, self.random.randint(self.stated, end), end})
        for low, high in pairwise(cuts):
            counts = [
                {"time": t, "count": n}
                for t, n in sorted(self.counts.items())
                if low <= t < high and n
            ]
            if counts and self.random.random() < self.errs / 2:
                counts[0]["count"] += 1
            self.put({"progress": {"lower": [low], "upper": [high], "counts": counts}})
        self.stated = self.time + 1

    def repeat(self):
        if self.sent:
            self.queue += self.random.sample(self.sent, min(len(self.sent), 5))

    def garble(self):
        self.is_right = False
        self.put(self.random.choice([b"garbage", b'{"array": [{"time": 1}]}', b"{}"]))


class Pair:
    """A database whose tasks read, and one whose driver does."""

    def __init__(self, make_opener, seed):
        self.random = random.Random(seed)
        self.openers = [make_opener(), make_opener()]
        tasks, driver = self.openers
        kind = self.random.choice([LoopEngine, LoopEngine, Some, TaskEngine])
        tasks.engine = lambda: kind(segments_of(tasks.path)) if kind is not TaskEngine else kind()
        driver.engine = LocalEngine
        driver.kafka = self.kafka = tasks.kafka
        self.topic = self.kafka.create_topic(PARTITIONS)
        self.sender = Sender(self.random, self.random.choice([0, 0, 0, 0.04]))
        self.dbs = [opener() for opener in self.openers]
        # What is published of a sender that contradicts itself depends on how much was read.
        few = 10**6 if self.sender.errs else self.random.choice([1, 7, 10**6])
        for name, columns in KINDS.items():
            self.execute(
                f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b:1' TOPIC '{self.topic}' "
                f"FORMAT JSON ENVELOPE MATERIALIZE WITH (max_rows_per_tick = {few}, "
                "RETAIN HISTORY FOR '1 h')"
            )
        self.execute(
            "CREATE MATERIALIZED VIEW n WITH (RETAIN HISTORY FOR '1 h') AS "
            "SELECT id, count(*) AS n FROM cdc GROUP BY id"
        )

    def execute(self, sql):
        return [db.execute(sql).rows for db in self.dbs]

    # What happens.

    def deliver(self):
        queue = self.sender.queue
        if self.random.random() < 0.5:
            self.random.shuffle(queue)
        for _ in range(self.random.randint(0, len(queue))):
            self.kafka.produce(self.topic, self.random.randrange(PARTITIONS), Record(queue.pop(0)))

    def tick(self):
        for opener, db in zip(self.openers, self.dbs, strict=True):
            opener.clock.advance(1_000)
            db.tick()

    def fail(self):
        """The one whose tasks read dies, and does the same again."""
        point = self.random.choice(POINTS)
        try:
            with armed({point: "raise"}):
                self.dbs[0].tick()
        except (FailpointRaised, Error):
            pass
        self.dbs[0] = self.openers[0].reopened(self.dbs[0])
        self.tick()

    def restart(self):
        self.dbs = [opener.reopened(db) for opener, db in zip(self.openers, self.dbs, strict=True)]

    def run(self):
        sender = self.sender
        actions = [
            (8, sender.change), (4, sender.state), (12, self.deliver), (1, sender.repeat),
            (10, self.tick), (2, self.fail), (2, self.restart),
            (0.3 if self.random.random() < 0.3 else 0, sender.garble),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        for _ in range(STEPS):
            self.random.choices(choices, weights)[0]()
        sender.state()
        while sender.queue:
            self.deliver()
            self.tick()
        self.settle()
        self.check()
        self.restart()
        self.tick()
        self.check()
        assert [db.check() for db in self.dbs] == [[], []]
        assert not self.left()

    def settle(self):
        before = None
        while before != (before := self.execute("SELECT object, upper FROM reclock.frontiers")):
            for _ in range(3):  # one may find out that updates came twice, and have more read
                self.tick()

    def left(self):
        """Files that nothing names."""
        core = self.dbs[0]._core
        return {n for n in core.segments.names() if n.startswith("staged-")} - core.named()

    # What must be.

    def history(self, db, name):
        """Every answer from the first time to the last."""
        found = []
        for time in range(self.sender.time + 2):
            try:
                found.append(Counter(db.execute(f"SELECT * FROM {name} AS OF {time}").rows))
            except Error as error:
                found.append(error.code)
        return found

    def check(self):
        failed = {row[0] for row in self.execute(
            "SELECT source FROM reclock.source_status WHERE state = 'failed'")[1]}  # fmt: skip
        for name in (*KINDS, "n"):
            found, wanted = (self.history(db, name) for db in self.dbs)
            assert found == wanted, name
            if self.sender.is_right and name in KINDS:
                self.check_model(found)
        for query in (
            "SELECT source, state FROM reclock.source_status",
            "SELECT object, upper FROM reclock.frontiers",
        ):
            found, wanted = map(Counter, self.execute(query))
            assert found == wanted, query
        if not failed:
            for query in (
                "SELECT source, detail FROM reclock.source_status",
                "SELECT object, code, message FROM reclock.errors",
            ):
                found, wanted = map(Counter, self.execute(query))
                assert found == wanted, query

    def check_model(self, found):
        """What is there at every time is what the sender had."""
        rows = Counter()
        for time, there in enumerate(found):
            rows = self.sender.history.get(time, rows)
            if isinstance(there, Counter):
                assert there == rows, time
        assert isinstance(found[self.sender.time], Counter)


class Some(LoopEngine):
    """Tasks read what there are some records of, the driver less."""

    least = 6


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("reclock.ingest.shares.SLICE", 4)
    monkeypatch.setattr("reclock.ingest.shares.LEAST", 2)


@pytest.mark.placed
@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_and_the_driver_agree_at_every_time(make_opener, seed):
    Pair(make_opener, seed).run()
