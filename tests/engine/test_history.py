"""How far back objects can be read: windows, holds, idle objects, restarts."""

from __future__ import annotations

import pytest

from reclock.dataflow.graph import collection_of
from reclock.errors import HoldViolation, InvalidSyntax, InvalidValue, StatementError, UndefinedName
from reclock.ids import HolderId
from reclock.time.timestamp import Timestamp

READER = HolderId("test/1")


@pytest.fixture
def shop(db):
    db.execute("ALTER SYSTEM SET logical_compaction_window = '10s'")
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    db.execute("CREATE INDEX i ON t (a)")
    return db


def state(db):
    (found,) = db._core.world.timelines.values()
    return found


def named(db, name):
    return db._core.world.catalog.find((name,)).id


def since(db, name):
    return state(db).sinces[named(db, name)].element()


def pass_time(db, opener, seconds, *, write=False):
    for n in range(seconds):
        opener.clock.advance(1_000)
        if write:
            db.execute("INSERT INTO t VALUES ($1, 1)", (int(opener.clock.now_ms()) + n,))
        db.tick()
        db._core.merger.wait()


def test_every_object_follows_its_window_also_when_nothing_happens(shop, opener):
    pass_time(shop, opener, 30)
    for item in ("t", "v", "i"):
        assert since(shop, item) == state(shop).upper - 10_000


def test_since_never_goes_back_when_the_window_grows(shop, opener):
    pass_time(shop, opener, 30)
    before = since(shop, "t")
    shop.execute("ALTER TABLE t SET (RETAIN HISTORY FOR '1 h')")
    assert since(shop, "t") == before
    pass_time(shop, opener, 30)
    assert since(shop, "t") == before
    assert since(shop, "v") == state(shop).upper - 10_000


def test_retention_is_set_altered_reset_and_survives_restart(shop, opener):
    shop.execute("ALTER MATERIALIZED VIEW v SET (RETAIN HISTORY FOR '1 min')")
    shop.execute("ALTER INDEX i SET (RETAIN HISTORY FOR '20s')")
    pass_time(shop, opener, 90, write=True)
    again = opener.reopened(shop)
    pass_time(again, opener, 1)
    upper = state(again).upper
    assert since(again, "t") == upper - 10_000
    assert since(again, "v") == upper - 60_000
    assert since(again, "i") == upper - 20_000
    again.execute("ALTER MATERIALIZED VIEW v RESET (RETAIN HISTORY)")
    pass_time(again, opener, 1)
    assert since(again, "v") == state(again).upper - 10_000


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("ALTER TABLE nowhere SET (RETAIN HISTORY FOR '1 h')", UndefinedName),
        ("ALTER TABLE v SET (RETAIN HISTORY FOR '1 h')", StatementError),
        ("ALTER TABLE t SET (RETAIN HISTORY FOR 'long')", InvalidSyntax),
    ],
)
def test_bad_retention_is_refused(shop, sql, error):
    with pytest.raises(error):
        shop.execute(sql)


def test_a_view_that_keeps_nothing_has_no_history(shop):
    shop.execute("CREATE VIEW plain AS SELECT 1 AS x")
    with pytest.raises(StatementError) as caught:
        shop.execute("ALTER VIEW plain SET (RETAIN HISTORY FOR '1 h')")
    assert "stores nothing" in caught.value.message


def test_a_hold_keeps_history_until_it_is_released(shop, opener):
    pass_time(shop, opener, 20, write=True)
    held = Timestamp(since(shop, "t") + 500)
    with shop._core.hold(READER, [named(shop, "t")], held):
        pass_time(shop, opener, 60, write=True)
        assert since(shop, "t") == held
        assert state(shop).stored_since(named(shop, "t")).element() <= held
        rows = sum(
            batch.num_rows
            for batch in state(shop).traces[collection_of(named(shop, "t"))].snapshot(held)
        )
        assert rows == 10
        with pytest.raises(HoldViolation):
            shop._core.hold(HolderId("test/2"), [named(shop, "t")], Timestamp(held - 1))
    pass_time(shop, opener, 1)
    assert since(shop, "t") == state(shop).upper - 10_000


def test_history_that_is_no_longer_held_is_forgotten_though_nothing_changes(shop, opener):
    shop.execute("INSERT INTO t VALUES (0, 0)")
    with shop._core.hold(READER, [named(shop, "t"), named(shop, "i")], state(shop).upper):
        for n in range(40):
            opener.clock.advance(1_000)
            shop.execute("UPDATE t SET a = $1", (n,))
            shop.tick()
            shop._core.merger.wait()
        rows = sum(r.rows for r in state(shop).arrangements.runs[collection_of(named(shop, "t"))])
        assert rows >= 79
    pass_time(shop, opener, 15)
    runs = state(shop).arrangements.runs
    for arrangement in (collection_of(named(shop, "t")), *state(shop).shape.kept[named(shop, "i")]):
        assert sum(r.rows for r in runs[arrangement]) <= 3  # 79 and more before
    assert shop.execute("SELECT * FROM t").rows == [(0, 39)]


def test_a_dropped_object_is_forgotten_when_nobody_holds_it(shop):
    v = named(shop, "v")
    hold = shop._core.hold(READER, [v], since(shop, "v"))
    shop.execute("DROP MATERIALIZED VIEW v")
    assert [row.object for row in shop._core.holds.rows()] == [v]
    hold.release()
    shop.execute("DROP INDEX i")
    with pytest.raises(InvalidValue):
        shop._core.holds.since(v)


def test_days_of_idle_ticks_leave_everything_as_it_was(shop, opener):
    pass_time(shop, opener, 30, write=True)
    pass_time(shop, opener, 30)
    sizes = [_sizes(shop)]
    for _ in range(1_000):
        opener.clock.advance(60_000)
        shop.tick()
    sizes.append(_sizes(shop))
    assert sizes[0] == sizes[1]


def _sizes(db):
    stored = {s.collection: len(db._store.snapshot(s.collection).updates) for s in collections(db)}
    runs = state(db).arrangements.runs
    sizes = {a: [(r.rows, r.length) for r in refs] for a, refs in runs.items()}
    return stored, sizes, sorted(db._core.segments.names())


def collections(db):
    return db._store.collections("")
