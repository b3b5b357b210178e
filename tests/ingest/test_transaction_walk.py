"""Transactions read by tasks and by the driver: the same rows and errors at all times.

Two databases follow the same topics. In the one the driver reads, of the other tasks read every
row, ticks are jobs, and what waits is in files. Partitions are read at their own speed; rows come
without a transaction, without a place, twice, or do not decode; processes restart, and the one
whose tasks read dies at any failpoint. ``RECLOCK_SEED=n`` runs one walk again.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import pairwise

import pytest

from debezium import Change, Connector
from engines.local_engine import LocalEngine
from engines.task_engine import LoopEngine
from reclock.catalog.item import Source
from reclock.engine.place import segments_of
from reclock.errors import Error
from reclock.testing.failpoints import NAMES, FailpointRaised, armed

STEPS = 30
SEEDS = (
    [int(os.environ["RECLOCK_SEED"])]
    if "RECLOCK_SEED" in os.environ
    else [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 60))]
)
POINTS = [n for n in NAMES if n.startswith(("durable.", "tick.", "ingest."))]
KEPT = "RETAIN HISTORY FOR '1 h'"
KINDS = {
    "keyed": ("(id BIGINT PRIMARY KEY, x TEXT)", ""),
    "bare": ("(id BIGINT, x TEXT)", ""),
    "epoch": ("(id BIGINT PRIMARY KEY, x TEXT)", "RECLOCK INTO EPOCH"),
}
PARTITIONS = 3


class Pair:
    """A database whose tasks read, and one whose driver does."""

    def __init__(self, make_opener, seed):
        self.random = random.Random(seed)
        self.openers = [make_opener(), make_opener()]
        tasks, driver = self.openers
        tasks.engine = lambda: LoopEngine(segments_of(tasks.path))
        driver.engine = LocalEngine
        driver.kafka = self.kafka = tasks.kafka
        self.connector = Connector(self.kafka.create_topic(1), ("orders", "items"), PARTITIONS)
        for topic in self.connector.topics.values():
            self.kafka._make(topic, PARTITIONS)
        self.dbs = [opener() for opener in self.openers]
        # Which wrong and loose rows there are, and so whether ticks may take a part of what waits.
        self.loose = self.random.choice([0, 0, 0.1, 0.5])
        self.odd = self.random.choice([0, 0, 0.05])
        # Without a position in the log only the transaction tells that a row was sent before.
        self.has_positions = self.random.random() < 0.5
        self.queues = {}
        self.sent = []
        self.made = 0
        if self.random.random() < 0.5:
            self.snapshot()
        few = self.random.choice([5, 20]) if not self.loose and not self.made else 10**6
        for name, (columns, rest) in KINDS.items():
            self.execute(
                f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER 'b:1' TOPIC "
                f"'{self.connector.topics['orders']}' FORMAT JSON ENVELOPE DEBEZIUM {rest} WITH "
                f"(consistency_topic = '{self.connector.metadata}', max_rows_per_tick = {few}, "
                f"{KEPT})"
            )

    def execute(self, sql):
        return [db.execute(sql).rows for db in self.dbs]

    # What is written.

    def snapshot(self):
        for _ in range(self.random.randint(1, 30)):
            self.loose_row("r")

    def loose_row(self, op):
        _, *rows, _ = self.transaction(self.random.randint(0, 9))
        for message in rows:
            if message.value is not None:
                message.value["payload"] |= {"op": op, "transaction": None}
                if op == "r":
                    message.value["payload"] |= {"before": None}
        self.put(rows)

    def transaction(self, *keys):
        self.made += 1
        tables = self.random.choices(["orders", "items"], [4, 1], k=len(keys))
        values = self.random.choices([None, f"x{self.made}"], [1, 4], k=len(keys))
        return self.connector.transaction(*map(Change, tables, keys, values))

    def put(self, messages):
        for message in messages:
            self.queues.setdefault(message[:2], []).append(message)

    def commit(self):
        many = self.random.choice([1, 3, 8, 8, 200])
        messages = self.transaction(*(self.random.randint(0, 9) for _ in range(many)))
        for message in messages:
            if message.topic != self.connector.metadata and message.value is not None:
                payload = message.value["payload"]
                if not self.has_positions:
                    payload["source"] = None
                if self.random.random() < self.odd:
                    payload["transaction"]["total_order"] = None
                elif self.random.random() < self.odd:
                    payload["after"] = {"id": "nope", "x": "a"}
        self.put(messages)
        self.sent.append(messages)
        if self.random.random() < self.loose:
            self.loose_row(self.random.choice("rcu"))

    def repeat(self):
        if self.sent:
            messages = self.random.choice(self.sent[-3:])
            self.put(messages[self.random.randrange(len(messages)) :])

    def deliver(self):
        some = [key for key, queue in self.queues.items() if queue]
        for key in self.random.sample(some, self.random.randint(0, len(some))):
            queue = self.queues[key]
            for _ in range(self.random.randint(1, len(queue))):
                message = queue.pop(0)
                self.kafka.produce(message.topic, message.partition, message.record)

    # What is done with it.

    def tick(self):
        for opener, db in zip(self.openers, self.dbs, strict=True):
            opener.clock.advance(1_000)
            db.tick()

    def fail(self):
        """The one whose tasks read dies, and does the same again."""
        point = self.random.choice(POINTS)
        try:
            with armed({point: "raise"}):
                self.openers[0].clock.advance(1_000)
                self.dbs[0].tick()
        except (FailpointRaised, Error):
            pass
        self.dbs[0] = self.openers[0].reopened(self.dbs[0])
        self.openers[0].clock.advance(-1_000)
        self.tick()

    def restart(self):
        self.dbs = [opener.reopened(db) for opener, db in zip(self.openers, self.dbs, strict=True)]

    def run(self):
        actions = [
            (10, self.commit), (10, self.deliver), (1, self.repeat), (8, self.tick),
            (2, self.fail), (1, self.restart),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        for _ in range(STEPS):
            self.random.choices(choices, weights)[0]()
        while any(self.queues.values()):
            self.deliver()
            self.tick()
        before = None
        while before != (before := self.execute("SELECT count(*) FROM reclock.bindings")):
            self.tick()
        self.check()
        self.restart()
        self.tick()
        self.check()
        assert [db.check() for db in self.dbs] == [[], []]

    def history(self, db, name):
        """Every answer from the first time to the last."""
        state = db._core.world.of(next(s for s in db._core.world.catalog.of_kind(Source)
                                       if s.name == name))  # fmt: skip
        found = []
        times = range(int(state.upper)) if name != "epoch" else self.bound(db)
        for time in times:
            try:
                found.append(Counter(db.execute(f"SELECT * FROM {name} AS OF {time}").rows))
            except Error:
                found.append("error")  # of several, any one is told
        return found

    def bound(self, db):
        query = "SELECT DISTINCT timestamp FROM reclock.bindings WHERE source = 'epoch'"
        return sorted(time for (time,) in db.execute(query).rows)

    def check(self):
        for name in ("keyed", "bare"):
            found, wanted = (self.history(db, name) for db in self.dbs)
            assert found == wanted, name
        found, wanted = (distinct(self.history(db, "epoch")) for db in self.dbs)
        assert found[-1:] == wanted[-1:]
        for query in (
            "SELECT source, state, detail FROM reclock.source_status",
            "SELECT * FROM reclock.source_transactions",
            "SELECT object, code, message FROM reclock.errors",
        ):
            found, wanted = map(Counter, self.execute(query))
            assert found == wanted, query


def distinct(history):
    return history[:1] + [b for a, b in pairwise(history) if a != b]


@pytest.mark.placed
@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_and_the_driver_agree_at_every_time(make_opener, seed):
    Pair(make_opener, seed).run()
