"""A view that is replaced: readers see the old rows and, from one time on, the new ones."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from reclock.engine import replacement
from reclock.engine.preparation import Prepared
from reclock.errors import ExpressionFailed
from reclock.testing.failpoints import FailpointRaised, armed

QUERIES = [
    "SELECT g, sum(a) AS n FROM t GROUP BY g",
    "SELECT g, 2 * sum(a) AS n FROM t GROUP BY g",
    "SELECT g, a::bigint AS n FROM t",
    "SELECT g, count(*) AS n FROM u GROUP BY g",
    "SELECT t.g, sum(t.a) AS n FROM t JOIN u ON t.g = u.g GROUP BY t.g",
    "SELECT g, a::bigint AS n FROM t WHERE mz_now() < a * 100",
    "SELECT g, 1000 / (a - 3)::bigint AS n FROM t",
    "SELECT g, n FROM other",
    "SELECT 5 AS g, 7::bigint AS n FROM u WHERE k = 1",
]
BELOW = {
    "total": "SELECT count(*) AS c, sum(n) AS s FROM v",
    "joined": "SELECT u.k, v.n FROM u JOIN v ON u.g = v.g",
    "chosen": "SELECT DISTINCT g FROM v WHERE n > 5",
    "after": "SELECT s + 1 AS s FROM total",
    "kept": "SELECT n, count(*) AS c FROM v GROUP BY n",
}
SETUP = (
    "ALTER SYSTEM SET logical_compaction_window = '1h'",
    "CREATE TABLE t (k INT PRIMARY KEY, g INT, a INT); CREATE TABLE u (k INT PRIMARY KEY, g INT)",
    f"CREATE MATERIALIZED VIEW v AS {QUERIES[0]}",
    *(f"CREATE MATERIALIZED VIEW {n} AS {q}" for n, q in BELOW.items() if n != "kept"),
    f"CREATE VIEW kept AS {BELOW['kept']}", "CREATE INDEX kept_n ON kept (n)",
    "CREATE INDEX v_n ON v (n)",
    "CREATE MATERIALIZED VIEW other AS SELECT g, -1::bigint AS n FROM u",
)  # fmt: skip


def asked(db, query, time=None):
    """Return the rows of a query, or the code of its error."""
    try:
        rows = db.execute(query if time is None else f"{query} AS OF {time}").rows
    except Exception as error:
        return error.code
    return Counter(rows)


def expected(db, query):
    """Return what every relation has if ``query`` is that of v: none of it is kept."""
    found = {"v": asked(db, query)}
    known = {"v": query}
    for name, text in BELOW.items():
        below = text
        for other in ("v", "total"):
            if f"FROM {other}" in below or f"JOIN {other} " in below:
                below = below.replace(f"FROM {other}", f"FROM ({known[other]}) AS {other}")
                below = below.replace(f"JOIN {other} ", f"JOIN ({known[other]}) AS {other} ")
        known[name] = below
        found[name] = asked(db, below)
    return found


STEP = st.one_of(
    st.tuples(st.just("t"), st.integers(0, 4), st.integers(0, 2), st.integers(0, 30)),
    st.tuples(st.just("u"), st.integers(0, 4), st.integers(0, 2)),
    st.tuples(st.just("gone"), st.sampled_from(["t", "u"]), st.integers(0, 4)),
    st.tuples(st.just("time"), st.integers(1, 1_500)),
    st.tuples(st.just("view"), st.sampled_from(range(len(QUERIES)))),
    st.tuples(st.just("open")),
)


class Run:
    """A history of writes and replacements, and what was there at each time."""

    def __init__(self, opener):
        self.opener = opener
        opener.engine = LocalEngine
        self.db = opener()
        for statement in SETUP:
            self.db.execute(statement)
        self.query = QUERIES[0]
        self.known = {}
        self.subscribe()
        self.look()

    def subscribe(self):
        self.followers = {of: self.db.subscribe(f"SUBSCRIBE {of}") for of in ("v", "total")}
        self.sums = {of: Counter() for of in self.followers}

    def look(self):
        self.opener.clock.advance(1)
        self.db.tick()
        time = int(self.db.execute("SELECT count(*) FROM t").timestamp)
        there = self.known[time] = expected(self.db, self.query)
        for of in tuple(self.followers):
            try:
                while got := self.followers[of].fetch():
                    for one in got:
                        self.sums[of][one.row] += one.diff
            except ExpressionFailed:
                assert there[of] == "22012"
                del self.followers[of]  # a subscriber is told of an error once
                continue
            assert not isinstance(there[of], Counter) or +self.sums[of] == there[of]

    def do(self, step):
        db = self.db
        match step:
            case ("t", k, g, a):
                db.execute(f"DELETE FROM t WHERE k = {k}; INSERT INTO t VALUES ({k}, {g}, {a})")
            case ("u", k, g):
                db.execute(f"DELETE FROM u WHERE k = {k}; INSERT INTO u VALUES ({k}, {g})")
            case ("gone", table, k):
                db.execute(f"DELETE FROM {table} WHERE k = {k}")
            case ("time", by):
                self.opener.clock.advance(by)
            case ("view", at):
                self.query = QUERIES[at]
                db.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {self.query}")
            case _:
                self.db = self.opener.reopened(db)
                self.subscribe()
        self.look()

    def check(self):
        """Compare all that is kept with the model, at every time that was looked at."""
        for time, there in self.known.items():
            for name, rows in there.items():
                if name == "kept":
                    continue  # a plain view is its query: before the index, and after it
                assert asked(self.db, f"SELECT * FROM {name}", time) == rows, (name, time)
        assert asked(self.db, "SELECT * FROM kept") == self.known[max(self.known)]["kept"]
        rows = self.known[max(self.known)]["v"]
        for n in (7, 10, 1000) if isinstance(rows, Counter) else ():
            wanted = Counter()
            for (g, m), count in rows.items():
                wanted[g,] += count * (m == n)
            assert asked(self.db, f"SELECT g FROM v WHERE n = {n}") == +wanted
        assert self.db.check() == []


def lived(opener, steps):
    run = Run(opener)
    for step in steps:
        run.do(step)
    run.check()
    run.do(("open",))
    run.check()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, min_size=3, max_size=14))
def test_readers_of_every_time_see_what_the_query_of_that_time_says(make_opener, steps):
    lived(make_opener(), steps)


@pytest.mark.slow(seconds=100)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, min_size=6, max_size=25))
def test_readers_of_long_histories_see_what_the_query_of_that_time_says(make_opener, steps):
    lived(make_opener(), steps)


def updates(subscription):
    found = {}
    while got := subscription.fetch():
        for one in got:
            found.setdefault(int(one.timestamp), Counter())[one.row] += one.diff
    return {time: {r: d for r, d in rows.items() if d} for time, rows in found.items()}


@pytest.fixture
def sales(opener):
    db = opener()
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, g INT, a INT)")
    db.execute("INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5)")
    db.execute(f"CREATE MATERIALIZED VIEW v AS {QUERIES[0]}")
    db.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS s FROM v")
    return db


def test_subscribers_get_the_difference_at_one_time(sales, opener):
    of = {
        of: sales.subscribe(f"SUBSCRIBE {of}")
        for of in ("v", "total", "(SELECT g + n AS m FROM v)")
    }
    for follower in of.values():
        updates(follower)
    opener.clock.advance(5)
    sales.execute(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS "
        "SELECT g, sum(a) + CASE WHEN g = 1 THEN 2 ELSE 0 END AS n FROM t GROUP BY g"
    )
    got = {name: updates(follower) for name, follower in of.items()}
    (time,) = got["v"]
    assert got == {
        "v": {time: {(1, 30): -1, (1, 32): 1}},
        "total": {time: {(35,): -1, (37,): 1}},
        "(SELECT g + n AS m FROM v)": {time: {(31,): -1, (33,): 1}},
    }
    assert sales.execute(f"SELECT * FROM total AS OF {time - 1}").rows == [(35,)]
    assert sales.execute(f"SELECT * FROM total AS OF {time}").rows == [(37,)]
    opener.clock.advance(5)
    sales.execute("INSERT INTO t VALUES (4, 2, 1)")
    sales.tick()
    (later,) = updates(of["v"]).values()
    assert later == {(2, 5): -1, (2, 6): 1}


def test_ticks_go_on_while_a_view_is_prepared(sales, opener, monkeypatch):
    seen, session = [], sales.session()
    catch_up = Prepared.catch_up

    def busy(self):
        for n in range(3):
            opener.clock.advance(10)
            session.execute(f"INSERT INTO t VALUES ({10 + n}, {n}, {n})")
            seen.append(session.execute("SELECT s FROM total").rows)
            sales.tick()
            catch_up(self)

    monkeypatch.setattr(Prepared, "catch_up", busy)
    sales.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {QUERIES[1]}")
    assert seen == [[(35,)], [(36,)], [(38,)]]
    assert sales.execute("SELECT s FROM total").rows == [(76,)]
    assert sorted(sales.execute("SELECT * FROM v").rows) == [(0, 0), (1, 62), (2, 14)]
    again = opener.reopened(sales)
    assert sorted(again.execute("SELECT * FROM v").rows) == [(0, 0), (1, 62), (2, 14)]
    assert again.check() == []


def test_what_was_prepared_over_a_view_that_is_replaced_is_made_again(sales, opener, monkeypatch):
    catch_up, done, session = Prepared.catch_up, [], sales.session()

    def replaced_meanwhile(self):
        catch_up(self)
        if not done:
            done.append(True)
            session.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {QUERIES[1]}")

    monkeypatch.setattr(Prepared, "catch_up", replaced_meanwhile)
    sales.execute("CREATE MATERIALIZED VIEW more AS SELECT max(n) AS m FROM v")
    assert sales.execute("SELECT m FROM more").rows == [(60,)]
    sales.execute("INSERT INTO t VALUES (9, 1, 1)")
    assert sales.execute("SELECT m FROM more").rows == [(62,)]


def test_many_rows_are_exchanged_in_pieces(opener, monkeypatch):
    monkeypatch.setattr(replacement, "WHOLE_ROWS", 100)
    db = opener()
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, g INT, a INT)")
    db.insert("t", [(n, n % 7, n) for n in range(3_000)])
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT k, a FROM t WHERE g < 4")
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, a FROM t WHERE g > 2")
    there = "SELECT * FROM v EXCEPT ALL SELECT k, a FROM t WHERE g > 2"
    assert (
        db.execute("SELECT count(*) FROM v").rows
        == db.execute("SELECT count(*) FROM t WHERE g > 2").rows
    )
    assert db.execute(there).rows == []
    assert opener.reopened(db).execute(there).rows == []


POINTS = [
    "ddl.prepare.before", "ddl.prepare.after", "ddl.publish.before", "ddl.publish.after",
    "durable.append.before", "durable.commit.before", "durable.commit.after",
    "tick.compute.before", "tick.land.before", "tick.publish.before", "tick.publish.after",
]  # fmt: skip


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_the_old_view_or_the_new_one(opener, point, restart):
    db = opener()
    for statement in SETUP:
        db.execute(statement)
    db.execute(
        "INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5); INSERT INTO u VALUES (1, 1)"
    )
    old, new = expected(db, QUERIES[0]), expected(db, QUERIES[4])
    assert old != new
    opener.clock.advance(10)
    db.execute("UPDATE t SET a = a WHERE k = 1")  # so that there is something to tick
    with armed({point: "raise"}), pytest.raises(FailpointRaised):
        db.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {QUERIES[4]}")
    if restart:
        db = opener.reopened(db)
    got = {name: asked(db, f"SELECT * FROM {name}") for name in old}
    assert got in (old, new)
    if point == "ddl.publish.after":
        assert got == new
    if point.startswith(("ddl.prepare", "ddl.publish.before")):
        assert got == old
    db.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {QUERIES[4]}")
    db.execute("INSERT INTO t VALUES (4, 1, 7)")
    opener.clock.advance(10)
    db.tick()
    new = expected(db, QUERIES[4])
    db = opener.reopened(db)
    assert {name: asked(db, f"SELECT * FROM {name}") for name in old} == new
    assert db.check() == []
    db._core.collect_garbage()
    assert set(db._core.segments.names()) == db._core.world.named_segments()
