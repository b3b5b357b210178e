"""``reclock.arrangement_sizes`` is what one counts in the runs, whatever has happened."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reclock.arrangement.cache import process_cache
from reclock.engine.arrangements import layouts_of
from reclock.system.arrangement_sizes import owners

SIZES = "SELECT object, operator, records, pending, bytes, runs FROM reclock.arrangement_sizes"


def counted(db):
    """Return the sizes as they are read, batch by batch, from every run there is."""
    world = db._core.world
    found = Counter()
    for state in world.timelines.values():
        layouts = layouts_of(state.shape.graph)
        shown = owners(state)
        assert shown.keys() == state.arrangements.runs.keys(), "each arrangement once"
        for arrangement, refs in state.arrangements.runs.items():
            opened = [process_cache().open(state.segments, r, layouts[arrangement]) for r in refs]
            records = sum(batch.num_rows for run in opened for batch in run)
            size = sum(len(r.inline) if r.inline is not None else r.length for r in refs)
            item, operator = shown[arrangement]
            table = world.catalog[item]
            pending = 0
            if operator == "collection":
                logged = [e.run for e in state.wal.pending if e.table == item]
                runs = [
                    process_cache().open(state.segments, r, table.keying.layout) for r in logged
                ]
                pending = sum(batch.num_rows for run in runs for batch in run)
            found[table.name, operator, records, pending, size, len(refs)] += 1
    return found


rows = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 3))), min_size=1, max_size=4
)
actions = st.lists(
    st.one_of(
        rows.map(lambda some: ("insert", some)),
        st.integers(0, 5).map(lambda a: ("delete", a)),
        st.just(("tick", None)),
        st.just(("reopen", None)),
        st.just(("many", None)),
    ),
    max_size=8,
)


EVERYTHING = [
    ("insert", [(1, 1), (1, None)]), ("many", None), ("reopen", None), ("delete", 1),
    ("tick", None),
]  # fmt: skip


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(actions)
@example(EVERYTHING)
def test_sizes_are_those_of_the_runs(make_opener, walk):
    opener = make_opener()
    db = opener()
    db.execute("CREATE TABLE t (a INT, b INT); CREATE TABLE game (a INT) WITH (timeline = 'g')")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a")
    db.execute("CREATE MATERIALIZED VIEW j AS SELECT m.n, t.b FROM m JOIN t USING (a)")
    db.execute("CREATE MATERIALIZED VIEW bad AS SELECT 1 / b AS q FROM t")
    db.execute("CREATE INDEX i ON m (n); CREATE INDEX same ON m (n)")
    for action, argument in walk:
        opener.clock.advance(1_000)
        match action:
            case "insert":
                db.insert("t", argument)
                db.insert("game", [(a,) for a, _ in argument])
            case "delete":
                db.execute("DELETE FROM t WHERE a = $1", [argument])
            case "many":
                for n in range(12):
                    db.insert("t", [(n, n)])
                    opener.clock.advance(1_000)
                    db.tick()
                db._core.merger.wait()
            case "tick":
                db.tick()
            case _:
                db = opener.reopened(db)
        assert Counter(db.execute(SIZES).rows) == counted(db)


def test_pending_are_writes_that_no_tick_has_taken(db):
    db.execute("CREATE TABLE t (a INT); CREATE TABLE s (a INT)")
    db.execute("INSERT INTO t VALUES (1), (2), (2); INSERT INTO t VALUES (3)")
    query = "SELECT object, records, pending FROM reclock.arrangement_sizes ORDER BY object"
    assert db.execute(query).rows == [("s", 0, 0), ("t", 0, 3)], "two of the rows are one update"
    db.tick()
    assert db.execute(query).rows == [("s", 0, 0), ("t", 3, 0)]


def test_shared_state_is_shown_under_the_first_that_needs_it(db):
    db.execute("CREATE TABLE t (a INT, b INT); CREATE TABLE s (a INT, c INT)")
    view = "SELECT t.b, s.c FROM t JOIN s USING (a)"
    db.execute(f"CREATE MATERIALIZED VIEW one AS {view}")
    alone = db.execute(f"{SIZES} WHERE operator = 'join'").rows
    assert {row[0] for row in alone} == {"one"}
    assert len(alone) == 2
    db.execute(f"CREATE MATERIALIZED VIEW two AS {view} WHERE s.c > 0 OR s.c <= 0 OR s.c IS NULL")
    shared = db.execute(f"{SIZES} WHERE operator = 'join' AND object = 'one'").rows
    assert shared == alone
    db.execute("CREATE INDEX i ON t (a)")
    (index,) = db.execute(f"{SIZES} WHERE object = 'i'").rows
    assert index[1] == "index", "what holds an index's rows is the index's"
