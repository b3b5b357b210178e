"""SUBSCRIBE against SELECT AS OF: whatever happens, what was given adds up to what is there."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reclock.engine import object_changes as changes

QUERIES = {
    "t": "SELECT k, a FROM t",
    "m": "SELECT a, n FROM m",
    "(SELECT a % 3 AS r, sum(k) AS s FROM t GROUP BY a % 3)": None,
    "(SELECT k, a FROM t ORDER BY a DESC, k LIMIT 3)": None,
    "(SELECT t.k, m.n FROM t JOIN m ON t.a = m.a)": None,
    "v": "SELECT * FROM v",
}
SOME = st.integers(0, 4)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(st.tuples(SOME, st.none() | SOME), max_size=4)),
        st.tuples(st.just("update"), SOME, SOME),
        st.tuples(st.just("delete"), SOME),
        st.tuples(st.just("tick")),
        st.tuples(st.just("advance"), st.integers(0, 3_000)),
        st.tuples(st.just("fetch")),
        st.tuples(st.just("reconnect")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("cancelling"), SOME),
    ),
    max_size=14,
)
DEFAULTS = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def opened(opener):
    db = opener()
    db.execute("ALTER SYSTEM SET logical_compaction_window = '10h'")
    db.execute("CREATE TABLE t (k INT, a INT)")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a")
    db.execute("CREATE VIEW v AS SELECT max(k) AS x FROM t")
    return db


def act(db, opener, action):
    match action:
        case "insert", rows:
            if rows:
                db.insert("t", rows)
        case "update", k, a:
            db.execute("UPDATE t SET a = $1 WHERE k = $2", (a, k))
        case "delete", k:
            db.execute("DELETE FROM t WHERE k = $1", (k,))
        case "cancelling", k:
            db.execute("INSERT INTO t VALUES ($1, 1)", (k,))
            db.execute("DELETE FROM t WHERE k = $1 AND a = 1", (k,))
        case ("tick",):
            db.tick()
        case "advance", ms:
            opener.clock.advance(ms)


class Reader:
    """Accumulates a subscription, checks it at every progress, and reconnects from there."""

    def __init__(self, db, what, select):
        self.what, self.select = what, select
        self.total, self.progress = Counter(), None
        self.connect(db)

    def connect(self, db):
        options = "PROGRESS"
        as_of = ""
        if self.progress is not None:
            options, as_of = "PROGRESS, SNAPSHOT = false", f"AS OF {self.progress}"
        self.db = db
        self.sub = db.subscribe(f"SUBSCRIBE {self.what} WITH ({options}) {as_of}")

    def read(self):
        for u in self.sub:
            floor = -1 if self.progress is None else self.progress
            if not u.progressed:
                assert u.timestamp > floor
                assert u.diff
                self.total[u.row] += u.diff
                continue
            assert u.timestamp >= floor
            self.progress = u.timestamp
            there = self.db.execute(f"{self.select} AS OF {u.timestamp}").rows
            assert +self.total == Counter(there)
            assert -self.total == Counter()


@pytest.mark.parametrize("what", QUERIES)
@DEFAULTS
@given(rows_per_step=st.sampled_from([2, 1_000]), actions=ACTIONS)
def test_what_was_given_is_what_is_there_at_every_progress(
    make_opener, monkeypatch, what, rows_per_step, actions
):
    monkeypatch.setattr(changes, "STEP_ROWS", rows_per_step)
    opener = make_opener()
    db = opened(opener)
    reader = Reader(db, what, QUERIES[what] or what[1:-1])
    for action in actions:
        if action == ("fetch",):
            reader.read()
        elif action == ("reconnect",):
            reader.sub.close()
            reader.connect(db)
        elif action == ("restart",):
            db = opener.reopened(db)
            reader.connect(db)
        else:
            act(db, opener, action)
    db.tick()
    reader.read()
    assert reader.progress is not None
    reader.sub.close()
    assert db._core.world.transients == {}
    assert db.check() == []
    db.close()


@pytest.mark.parametrize("what", ["t", "(SELECT a, count(*) AS n FROM t GROUP BY a)"])
@DEFAULTS
@given(actions=ACTIONS, back=st.integers(1, 5_000), far=st.integers(1, 5_000))
def test_any_window_of_the_past_is_exact(make_opener, what, actions, back, far):
    opener = make_opener()
    db = opened(opener)
    start = int(db.execute("SELECT * FROM t").timestamp)
    for action in actions:
        act(db, opener, action)
    db.tick()
    now = int(db.execute("SELECT * FROM t").timestamp)
    as_of = max(start, now - back)
    up_to = as_of + far
    query = "SELECT k, a FROM t" if what == "t" else what[1:-1]
    with db.subscribe(f"SUBSCRIBE {what} AS OF {as_of} UP TO {up_to}") as sub:
        opener.clock.set(max(opener.clock.now_ms(), up_to + 1_000))
        got = list(sub)
        assert sub.closed
    assert [u.timestamp for u in got] == sorted(u.timestamp for u in got)
    assert all(as_of <= u.timestamp < up_to for u in got)
    for time in {as_of, up_to - 1, *(u.timestamp for u in got)}:
        total = Counter()
        for u in got:
            if u.timestamp <= time:
                total[u.row] += u.diff
        assert +total == Counter(db.execute(f"{query} AS OF {time}").rows)
    db.close()


def expected(kind, before, after, key):
    """Say what an envelope tells between two contents: key → list of the other values."""
    told = set()
    for k in before.keys() | after.keys():
        old, new = sorted(before.get(k, []), key=repr), sorted(after.get(k, []), key=repr)
        if old == new:
            continue
        one_old = old[0] if len(old) == 1 else None
        if len(new) > 1:
            state, sides = "key_violation", (None, None)
        elif new:
            state = "insert" if kind == "debezium" and not old else "upsert"
            sides = (one_old, new[0])
        else:
            state, sides = "delete", (one_old, None)
        shown = sides if kind == "debezium" else sides[1:]
        values = [v for row in shown for v in (row or (None,) * (2 - len(key)))]
        told.add((state, *k, *values))
    return told


def by_key(total, key):
    found = {}
    for row, count in total.items():
        rest = tuple(v for at, v in enumerate(row) if at not in key)
        found.setdefault(tuple(row[at] for at in key), []).extend([rest] * count)
    return found


@pytest.mark.parametrize("kind", ["upsert", "debezium"])
@pytest.mark.parametrize("followed", [("t", (0,)), ("t", (1,)), ("m", (0,)), ("u", (0,))])
@DEFAULTS
@given(snapshot=st.booleans(), actions=ACTIONS)
def test_envelopes_tell_every_change_of_a_key(make_opener, kind, followed, snapshot, actions):
    what, key = followed
    opener = make_opener()
    db = opened(opener)
    db.execute("CREATE VIEW u AS SELECT a + 1 AS b, k FROM t")
    db.insert("t", [(1, 1), (1, 2), (2, 2), (3, None)])
    with ExitStack() as stack:
        names = {"t": "ka", "m": "an", "u": "bk"}[what]
        keys = ", ".join(names[at] for at in key)
        options = f"SNAPSHOT = {str(snapshot).lower()}"
        enveloped = f"SUBSCRIBE {what} WITH ({options}) ENVELOPE {kind.upper()} (KEY ({keys}))"
        sub = stack.enter_context(db.subscribe(enveloped))
        plain = stack.enter_context(db.subscribe(f"SUBSCRIBE {what} AS OF {sub.as_of}"))
        for action in actions:
            act(db, opener, action)
        told, rows = {}, {}
        for u in sub:
            assert u.diff is None
            assert (u.state, *u.row) not in told.setdefault(u.timestamp, set())
            told[u.timestamp].add((u.state, *u.row))
        for u in plain:
            rows.setdefault(u.timestamp, []).append(u)
    total = Counter()
    for time in sorted(rows):
        before = by_key(+total, key)
        for u in rows[time]:
            total[u.row] += u.diff
        wanted = expected(kind, before, by_key(+total, key), key)
        if time == sub.as_of and not snapshot:
            wanted = set()
        assert told.pop(time, set()) == wanted
    assert told == {}
    db.close()
