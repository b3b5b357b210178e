"""Objects that are filled beside the ticks are right at every time, whatever happens meanwhile.

Of every query one view is there from the beginning, and one is made late: while it is filled, and
again before it is published, rows come and go, time passes, other objects are made and dropped,
and the state is compacted. Both must be the same at every time that the late one can be read at;
so must the query itself, asked once. Real operators (``LocalEngine``), and the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock.errors import ExpressionFailed
from reclock.testing.failpoints import FailpointRaised, armed

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES = {
    "rows": "SELECT k, a + 1 AS a FROM t WHERE a <> 3",
    "fails": "SELECT k, 6 / a AS a FROM t",
    "join": "SELECT t.k, t.a, u.a AS b FROM t JOIN u ON t.k = u.k",
    "own": "SELECT x.a, y.k FROM t x JOIN t y ON x.a = y.k",
    "outer": "SELECT t.k, u.a FROM t LEFT JOIN u ON t.a = u.k",
    "groups": "SELECT k, count(*) AS n, sum(a) AS s, min(a) AS m FROM t GROUP BY k",
    "all": "SELECT count(*) AS n, max(a) AS m FROM t",
    "distinct": "SELECT DISTINCT a FROM t",
    "except": "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    "top": "SELECT k, a FROM t ORDER BY a DESC, k LIMIT 2",
    "below": "SELECT n, count(*) AS c FROM kept GROUP BY n",
    "below_fails": "SELECT a FROM failing WHERE a > 1",
    "both_fail": "SELECT x.a, 8 / y.a AS b FROM failing x JOIN t y ON x.k = y.k",
    "temporal": "SELECT k, a FROM t WHERE mz_now() <= 1005 + 3 * a",
    "temporal_sum": "SELECT sum(a) AS s FROM t WHERE mz_now() <= 1005 + 3 * a AND mz_now() > a",
}

change = st.one_of(
    st.tuples(
        st.just("insert"), st.sampled_from("tu"), st.integers(0, 3),
        st.one_of(st.none(), st.integers(-2, 5)),
    ),
    st.tuples(st.just("delete"), st.sampled_from("tu"), st.integers(0, 3)),
    st.tuples(st.just("update"), st.sampled_from("tu"), st.integers(0, 3), st.integers(-2, 5)),
    st.tuples(st.just("tick"), st.integers(0, 4)),
)  # fmt: skip
changes = st.lists(change, max_size=5)
other = st.sampled_from(["", "view", "same", "table", "drop", "subscribe"])


def apply(run, clock, some) -> None:
    for what, *values in some:
        match what, values:
            case "insert", [table, k, a]:
                run(f"INSERT INTO {table} VALUES ({k}, {'NULL' if a is None else a})")
            case "delete", [table, k]:
                run(f"DELETE FROM {table} WHERE k = {k}")
            case "update", [table, k, a]:
                run(f"UPDATE {table} SET a = {a} WHERE k = {k}")
            case "tick", [ms]:
                clock.advance(ms)


def outcome(run: Callable, sql: str) -> object:
    try:
        return sorted(run(sql).rows, key=repr)
    except ExpressionFailed as error:
        return error.code


def begin(opener, name):
    db = opener(background=False)
    db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
    db.execute("CREATE TABLE t (k int, a int)")
    db.execute("CREATE TABLE u (k int, a int)")
    db.execute("CREATE MATERIALIZED VIEW kept AS SELECT k, count(*) AS n FROM t GROUP BY k")
    db.execute("CREATE MATERIALIZED VIEW failing AS SELECT k, 4 / a AS a FROM t")
    db.execute("CREATE TABLE unused (k int)")
    db.execute(f"CREATE MATERIALIZED VIEW early AS {QUERIES[name]}")
    return db


def meddle(db, what, name, new) -> None:
    session = db.session()
    match what:
        case "view":
            session.execute(f"CREATE MATERIALIZED VIEW {new} AS SELECT k FROM u")
        case "same":
            session.execute(f"CREATE MATERIALIZED VIEW {new} AS {QUERIES[name]}")
        case "table":
            session.execute(f"CREATE TABLE {new} (k int)")
        case "drop":
            session.execute("DROP TABLE IF EXISTS unused")
        case "subscribe":
            session.subscribe(f"SUBSCRIBE ({QUERIES[name]})").close()


def compare(db, clock, name, made) -> None:
    clock.advance(9)
    db.tick()
    core = db._core
    item = core.world.catalog.find(("late",))
    state = core.world.of(item)
    since = int(state.sinces[item.id].element())
    assert since <= made
    for time in range(since, int(state.upper)):
        late = outcome(db.execute, f"SELECT * FROM late AS OF {time}")
        assert late == outcome(db.execute, f"SELECT * FROM early AS OF {time}"), time
        asked = outcome(db.execute, f"{QUERIES[name]} AS OF {time}")
        if not isinstance(late, str):
            assert late == asked, time
    assert db.check() == []


anything = st.tuples(st.sampled_from(sorted(QUERIES)), *[changes] * 4, other, other)


def walk(opener, engine, walked):
    name, first, during, last, after, *others = walked
    opener.engine = engine
    db = begin(opener, name)
    session = db.session()
    apply(session.execute, opener.clock, first)
    db.tick()
    before = iter([("one", during, others[0])])
    behind = iter([("two", last, others[1])])

    def happen(what):
        for new, some, meddling in what:  # with the first attempt
            apply(session.execute, opener.clock, some)
            meddle(db, meddling, name, new)
            db.tick()

    with armed(
        {
            "ddl.prepare.before": lambda: happen(before),
            "ddl.prepare.after": lambda: happen(behind),
        }
    ):
        db.execute(f"CREATE MATERIALIZED VIEW late AS {QUERIES[name]}")
    made = int(db._core.world.of(db._core.world.catalog.find(("late",))).upper)
    apply(session.execute, opener.clock, after)
    compare(db, opener.clock, name, made)
    db.close()
    compare(opener(), opener.clock, name, made)


def fewer(examples):
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


FIRST = [("insert", "t", 1, 1), ("insert", "u", 1, 2), ("insert", "t", 2, 5)]
DURING = [("insert", "t", 2, 0), ("update", "t", 1, 3), ("insert", "u", 2, 4), ("tick", 2)]
LAST = [("delete", "t", 2), ("insert", "t", 3, 2), ("insert", "t", 3, None), ("tick", 3)]
AFTER = [("insert", "u", 3, 1), ("update", "t", 1, 5), ("insert", "t", 0, 0)]


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_errors_and_times_that_come_while_it_is_filled(opener, name):
    walk(opener, LocalEngine, (name, FIRST, DURING, LAST, AFTER, "", ""))


@given(walked=anything)
@fewer(6)
def test_a_view_made_late_is_the_one_that_was_there(make_opener, walked):
    walk(make_opener(), LocalEngine, walked)


@given(walked=anything)
@fewer(3)
def test_so_it_is_in_the_model(make_opener, walked):
    walk(make_opener(), ModelEngine, walked)


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("name", sorted(QUERIES))
@given(some=st.tuples(*[changes] * 4, other, other))
@fewer(60)
def test_a_view_of_every_kind_made_late(make_opener, name, some):
    walk(make_opener(), LocalEngine, (name, *some))


def test_history_that_is_still_to_be_followed_is_not_forgotten(opener):
    opener.engine = LocalEngine
    db = begin(opener, "join")
    db.execute("ALTER SYSTEM SET logical_compaction_window = '0s'")
    session = db.session()

    def go_on():
        for k in range(40):
            session.execute(f"INSERT INTO t VALUES ({k % 3}, {k})")
            session.execute(f"INSERT INTO u VALUES ({k % 3}, {k})")
            opener.clock.advance(1)
            db.tick()
        db._core.merger.wait()
        db.tick()
        held = session.execute("SELECT DISTINCT object FROM reclock.holds").rows
        assert {("t",), ("u",)} <= set(held)

    with armed({"ddl.prepare.before": go_on}):
        db.execute(f"CREATE MATERIALIZED VIEW late AS {QUERIES['join']}")
    assert outcome(db.execute, "SELECT * FROM late") == outcome(db.execute, "SELECT * FROM early")
    assert db.execute("SELECT * FROM reclock.holds").rows == []


def test_what_is_prepared_in_vain_is_removed(opener):
    opener.engine = LocalEngine
    db = begin(opener, "groups")
    db.insert("t", [(k, k) for k in range(20_000)])
    db.tick()
    seen = []

    def collect():
        with db._core.writing():
            db._core.collect_garbage()
        return [name for name in db._core.segments.names() if "prepare" in name]

    with armed({"ddl.prepare.after": "raise"}), pytest.raises(FailpointRaised):
        db.execute(f"CREATE MATERIALIZED VIEW late AS {QUERIES['own']}")
    assert collect() == []
    assert db.execute("SELECT * FROM reclock.holds").rows == []
    with armed({"ddl.prepare.after": lambda: seen.append(collect())}):
        db.execute(f"CREATE MATERIALIZED VIEW late AS {QUERIES['own']}")
    assert seen[0]
    assert collect()
    assert db.check() == []
