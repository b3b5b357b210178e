"""Random walks of everything a database can do, against a model that remembers all of it.

A walk mixes definitions, writes, reads, reads of the past, subscriptions, ticks, jumps of
the clock in both directions, compaction, restarts and crashes at any failpoint. The model
keeps every change ever made with its time, so it knows every object at every time. After
each step something is compared: answers at the latest time and at times still kept; answers
given before a crash with those after it; that reads never go back; that the state is whole.

``RECLOCK_SEED=n`` runs one walk again.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from reclock.arrangement import merge as rules
from reclock.engine import merging
from reclock.errors import Error, Unreadable
from reclock.testing.failpoints import NAMES, FailpointRaised, armed

STEPS = 60
SEEDS = [int(os.environ["RECLOCK_SEED"])] if "RECLOCK_SEED" in os.environ else range(8)
CRASHES = [
    name
    for name in NAMES
    if name.startswith(
        ("durable.", "arrangement.", "tick.", "merge.", "write.", "ddl.", "transaction.")
    )
]


def by_parity(tables):
    found = Counter()
    for (_, a), count in tables["t"].items():
        found[a % 2] += count
    return Counter({(odd, n): 1 for odd, n in found.items() if n})


def values(tables):
    return Counter({(a,): 1 for (_, a), count in tables["t"].items() if count})


def joined(tables):
    found = Counter()
    for (k, a), one in tables["t"].items():
        for (j, b), other in tables["u"].items():
            if k == j:
                found[k, a + b] += one * other
    return found


def over(tables):
    return Counter({(sum(n for _, n in by_parity(tables)),): 1})


VIEWS = {
    "parity": ("SELECT a % 2 AS odd, count(*) AS n FROM t GROUP BY a % 2", by_parity),
    "vals": ("SELECT DISTINCT a FROM t", values),
    "joined": ("SELECT t.k, t.a + u.a AS s FROM t JOIN u ON t.k = u.k", joined),
    "over": ("SELECT coalesce(sum(n), 0) AS n FROM parity", over),
}


class Model:
    """Every change of every table with its time, and which views there are."""

    def __init__(self):
        self.events = {"t": [], "u": []}
        self.views = {}
        self.unsure = []  # (lower, upper): when something happened that nobody saw

    def tables(self, time):
        found = {}
        for name, events in self.events.items():
            rows = Counter()
            for at, row, diff in events:
                if at <= time:
                    rows[row] += diff
            found[name] = +rows
        return found

    def at(self, name, time):
        tables = self.tables(time)
        return tables[name] if name in tables else +VIEWS[name][1](tables)

    def latest(self, name):
        return self.at(name, float("inf"))

    def knows(self, time):
        return not any(lower <= time < upper for lower, upper in self.unsure)


class Walk:
    def __init__(self, opener, seed, execution="auto"):
        self.random = random.Random(seed)
        self.opener = opener
        self.model = Model()
        self.read_at = 0
        self.seen = {}
        self.following = {}
        self.db = opener()
        self.db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL)")
        self.db.execute("CREATE TABLE u (k INT, a INT NOT NULL)")
        self.db.execute("ALTER SYSTEM SET logical_compaction_window = '5s'")
        self.db.execute(f"ALTER SYSTEM SET execution = '{execution}'")

    def run(self):
        actions = [
            (10, self.write), (6, self.pass_time), (6, self.read), (6, self.read_past),
            (2, self.define), (1, self.drop), (2, self.restart), (3, self.crash), (2, self.jump),
            (1, self.retain), (3, self.follow), (4, self.fetch), (1, self.check),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        for _ in range(STEPS):
            self.random.choices(choices, weights)[0]()
        self.restart()
        for name in self.objects():
            self.compare_all(name)
        assert self.db.check() == []

    def objects(self):
        return ["t", "u", *self.model.views]

    # Writes.

    def operation(self):
        """Return a statement, and what it does to which table."""
        name = self.random.choice(["t", "u"])
        rows = self.model.latest(name)
        kind = self.random.choice(["insert", "insert", "update", "delete"])
        if kind == "insert":
            free = [k for k in range(12) if name == "u" or all(k != row[0] for row in rows)]
            keys = self.random.sample(free, min(len(free), self.random.randint(1, 3)))
            if not keys:
                return None
            added = [(k, self.random.randrange(6)) for k in keys]
            text = ", ".join(map(str, added))
            return name, f"INSERT INTO {name} VALUES {text}", [(row, 1) for row in added]
        if kind == "update":
            limit = self.random.randrange(12)
            changes = [(r, -n) for r, n in rows.items() if r[0] < limit]
            changes += [((r[0], r[1] + 1), n) for r, n in rows.items() if r[0] < limit]
            return name, f"UPDATE {name} SET a = a + 1 WHERE k < {limit}", changes
        key = self.random.randrange(12)
        changes = [(r, -n) for r, n in rows.items() if r[0] == key]
        return name, f"DELETE FROM {name} WHERE k = {key}", changes

    def write(self):
        made = self.operation()
        if made is not None:
            name, sql, changes = made
            time = self.db.execute(sql).timestamp
            assert time > self.read_at, "a write at a time that was read before"
            self.model.events[name] += [(time, row, diff) for row, diff in changes]

    # Time.

    def pass_time(self):
        self.opener.clock.advance(self.random.choice([1, 400, 1_000, 7_000]))
        self.db.tick()

    def jump(self):
        now = self.opener.clock.now_ms()
        self.opener.clock.set(max(0, now + self.random.choice([-50_000, -900, 100_000])))

    # Reads.

    def read(self):
        name = self.random.choice(self.objects())
        result = self.db.execute(f"SELECT * FROM {name}")
        assert result.timestamp >= self.read_at, "a read went back"
        self.read_at = result.timestamp
        assert Counter(result.rows) == self.model.latest(name), name

    def bounds(self, name):
        (state,) = self.db._core.world.timelines.values()
        item = self.db._core.world.catalog.find((name,))
        return state.sinces[item.id].element(), state.upper

    def read_past(self):
        name = self.random.choice(self.objects())
        since, upper = self.bounds(name)
        if since > 0 and self.random.random() < 0.3:
            with pytest.raises(Unreadable):
                self.db.execute(f"SELECT * FROM {name} AS OF {since - 1}")
        times = {at for events in self.model.events.values() for at, _, _ in events}
        kept = [t for t in times | {since, upper - 1} if since <= t < upper]
        self.compare(name, self.random.choice(kept))

    def compare(self, name, time):
        result = self.db.execute(f"SELECT * FROM {name} AS OF {time}")
        assert result.timestamp == time
        rows = Counter(result.rows)
        if self.model.knows(time):
            assert rows == self.model.at(name, time), (name, time)
        known = self.seen.setdefault((name, self.model.views.get(name), time), rows)
        assert rows == known, (name, time, "another answer than before")

    def compare_all(self, name):
        since, upper = self.bounds(name)
        times = {at for events in self.model.events.values() for at, _, _ in events}
        for time in sorted(t for t in times | {since, upper - 1} if since <= t < upper):
            self.compare(name, time)

    # Definitions.

    def define(self):
        name = self.random.choice(list(VIEWS))
        if name in self.model.views or (name == "over" and "parity" not in self.model.views):
            return
        self.db.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name][0]}")
        self.model.views[name] = len(self.seen)
        if self.random.random() < 0.5:
            self.db.execute("CREATE INDEX ON t (a)")

    def drop(self):
        if self.model.views:
            name = self.random.choice(list(self.model.views))
            self.db.execute(f"DROP MATERIALIZED VIEW {name} CASCADE")
            gone = {name} | ({"over"} if name == "parity" else set())
            for view in gone:
                self.model.views.pop(view, None)
                if (open_ := self.following.pop(view, None)) is not None:
                    open_[0].close()

    def retain(self):
        name = self.random.choice(self.objects())
        kind = "TABLE" if name in "tu" else "MATERIALIZED VIEW"
        for_ = self.random.choice(["SET (RETAIN HISTORY FOR '20s')", "RESET (RETAIN HISTORY)"])
        self.db.execute(f"ALTER {kind} {name} {for_}")

    # Following.

    def follow(self):
        name = self.random.choice(self.objects())
        if name not in self.following:
            query = f"SUBSCRIBE TO {name} WITH (PROGRESS)"
            self.following[name] = [self.db.subscribe(query), [], None]

    def fetch(self):
        for name, open_ in self.following.items():
            subscription, told, _ = open_
            while came := subscription.fetch(timeout=0):
                told += [update for update in came if not update.progressed]
                open_[2] = max([u.timestamp for u in came if u.progressed], default=open_[2])
            assert open_[2] is not None, "no progress"
            rows = Counter()
            for update in told:
                rows[tuple(update.row)] += update.diff
            if self.model.knows(open_[2]):
                assert all(update.timestamp <= open_[2] for update in told)
                assert +rows == self.model.at(name, open_[2]), (name, open_[2])

    # Endings.

    def restart(self):
        self.following.clear()
        self.db = self.opener.reopened(self.db)

    def crash(self):
        point = self.random.choice(CRASHES)
        made = self.operation()
        if made is None:
            return
        name, sql, changes = made
        _, lower = self.bounds("t")
        try:
            with armed({point: "raise"}):
                time = self.db.execute(sql).timestamp
                self.model.events[name] += [(time, row, diff) for row, diff in changes]
                self.pass_time()
            return
        except (FailpointRaised, Error):
            self.restart()
        done = [(t, row, diff) for t, row, diff in self.model.events[name]]
        result = self.db.execute(f"SELECT * FROM {name}")
        upper = self.bounds("t")[1]
        if Counter(result.rows) != self.model.latest(name):
            self.model.events[name] = done + [(upper - 1, row, diff) for row, diff in changes]
            self.model.unsure.append((lower, upper))
            assert Counter(result.rows) == self.model.latest(name), (name, point)

    def check(self):
        assert self.db.check() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk(make_opener, seed):
    Walk(make_opener(), seed).run()


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_walks(make_opener, seed):
    Walk(make_opener(), seed).run()


@pytest.fixture
def merged_in_tasks(monkeypatch):
    """Merges of few runs, in tasks of few rows, often."""
    monkeypatch.setattr(merging, "FEW_RUNS", 2)
    monkeypatch.setattr(rules, "PART_ROWS", 3)


@pytest.mark.usefixtures("merged_in_tasks")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_with_merges_in_tasks(make_opener, seed):
    walk = Walk(make_opener(), seed, "spark")
    walk.run()


@pytest.mark.slow(seconds=4)
@pytest.mark.usefixtures("merged_in_tasks")
@pytest.mark.parametrize("seed", range(300, 360))
def test_many_walks_with_merges_in_tasks(make_opener, seed):
    Walk(make_opener(), seed, "spark").run()
