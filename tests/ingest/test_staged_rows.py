"""Transactions whose rows wait in files: what the driver has of them, and when files go."""

from __future__ import annotations

import pytest

from engines.task_engine import LoopEngine
from reclock.catalog.item import Source
from reclock.engine.place import segments_of
from reclock.errors import Error
from reclock.ingest.transactions.transactions import Transactions

MANY = [("orders", n, "a") for n in range(40)]


@pytest.fixture
def shop(opener, make_shop):
    opener.engine = lambda: LoopEngine(segments_of(opener.path))
    return make_shop(opener)


def intake(shop):
    (source,) = shop.db._core.world.catalog.of_kind(Source)
    return shop.db._core.intakes[source.id]


def files(shop):
    return {name for name in shop.db._core.segments.names() if name.startswith("staged-")}


def temp(shop):
    query = "SELECT records FROM reclock.arrangement_sizes WHERE operator = 'temp'"
    return shop.read(query)


@pytest.mark.parametrize("into", ["", "RECLOCK INTO EPOCH"])
def test_rows_wait_in_files_through_restarts_and_never_come_to_the_driver(shop, into):
    shop.create(rest=into)
    shop.commit(("orders", 100, "z"))
    begin, *rows, end = shop.transaction(*MANY)
    shop.send(begin, *rows[:25])
    shop.tick(1_000)
    assert shop.read("SELECT count(*) FROM orders") == [(1,)]
    held = intake(shop).statements
    assert (held.size, held.waiting, held.staged.rows) == (0, 25, 25)
    assert temp(shop) == [(2,)]  # BEGIN, and the one that is done
    assert files(shop)
    assert files(shop) <= shop.db._core.named()
    shop.crash()
    assert (intake(shop).statements.size, intake(shop).statements.waiting) == (0, 25)
    shop.send(*rows[25:])
    shop.tick(1_000)
    assert shop.status()[0] == "waiting"
    shop.send(end)
    shop.tick(1_000)
    assert shop.read("SELECT count(*) FROM orders") == [(41,)]
    taken = "SELECT rows, driver_rows FROM reclock.ticks WHERE phase = 'gather'"
    every, of_driver = max(shop.db.execute(taken).rows)
    assert every >= 40
    assert of_driver < 10  # what is said of transactions
    assert not files(shop)
    assert shop.db.check() == []
    shop.crash()
    assert intake(shop).statements.waiting == 0


def test_what_has_gone_from_a_file_is_known_after_a_restart(shop, monkeypatch):
    """Also if its id is forgotten, and rows without a transaction."""
    monkeypatch.setitem(Transactions.__init__.__kwdefaults__, "remembered", 2)
    shop.create(columns="(id BIGINT, x TEXT)")
    early = [shop.transaction(("orders", 3 * n, "a")) for n in range(5)]
    begin, *rows, end = shop.transaction(*(("orders", 3 * n, "b") for n in range(20, 26)))
    _, loose, _ = shop.transaction(("orders", 300, "s"))
    loose.value["payload"] |= {"op": "r", "before": None, "transaction": None}
    for its_begin, _, its_end in early:
        shop.send(its_begin, its_end)
    shop.send(begin, loose)
    for (_, row, _), other in zip(early, rows[:5], strict=True):
        shop.send(row, other)  # all in one partition: both in each piece
    shop.tick()
    assert shop.read("SELECT count(*) FROM orders") == [(6,)]
    for _ in range(2):
        assert intake(shop).statements.waiting == 5
        shop.crash()
        shop.tick()
    shop.send(rows[5], end)
    shop.tick()
    assert shop.read("SELECT count(*) FROM orders") == [(12,)]
    assert intake(shop).statements.waiting == 0
    assert not files(shop)


def test_a_row_that_another_piece_has_is_taken_once(shop):
    shop.create(columns="(id BIGINT, x TEXT)")
    begin, *rows, end = shop.transaction(*MANY[:6])
    for row in rows:
        row.value["payload"]["source"] = None  # no position tells repetitions
    shop.send(begin, *rows[:4])
    shop.tick()
    shop.send(*rows[2:], end)
    shop.tick()
    assert shop.read("SELECT id FROM orders") == [(n,) for n in range(6)]
    assert not files(shop)


def test_a_piece_with_a_record_that_does_not_decode_is_the_drivers(shop):
    shop.create()
    begin, *rows, end = shop.transaction(*MANY)
    rows[7].value["payload"]["after"] = {"id": "not a number", "x": "a"}
    shop.send(begin, *rows)
    shop.tick()
    assert intake(shop).statements.waiting == 40
    assert "not a number" in shop.status()[1]
    shop.send(end)
    shop.tick()
    with pytest.raises(Error, match="not a number"):
        shop.read("SELECT * FROM orders")
    assert not files(shop)


def test_a_snapshot_of_many_rows_comes_with_the_first_transaction(shop):
    shop.create()
    _, *rows, _ = shop.transaction(*MANY)
    for row in rows:
        row.value["payload"] |= {"op": "r", "before": None, "transaction": None}
    shop.send(*rows)
    shop.tick()
    assert "rows without a transaction wait" in shop.status()[1]
    assert intake(shop).statements.size == 0
    shop.crash()
    shop.commit(("orders", 1, "t"))
    shop.tick()
    assert shop.read("SELECT count(*), min(x), max(x) FROM orders AS OF 1") == [(40, "a", "t")]
    assert not files(shop)


def test_reading_stops_where_ticks_have_enough(shop):
    shop.create(options="max_rows_per_tick = 10")
    for at in range(12):
        shop.commit(*((table, 10 * at + n, "a") for table, n, _ in MANY[:10]))
    most = []
    for at in range(12):
        while intake(shop).pull():
            pass
        most.append(intake(shop).statements.staged.rows)
        shop.tick()
        assert shop.read(f"SELECT count(*) FROM orders AS OF {at + 1}") == [(10 * (at + 1),)]
    assert max(most) < 60
    assert shop.status() == ("running", None)


def test_a_source_that_is_dropped_leaves_no_file(shop):
    shop.create()
    shop.commit(("orders", 1, "a"))
    shop.tick()
    begin, *rows, _ = shop.transaction(*MANY)
    shop.send(begin, *rows)
    shop.commit(("orders", 2, "a"))
    shop.tick()
    assert files(shop)
    shop.db.execute("DROP SOURCE orders")
    shop.db.execute("CREATE TABLE t (a INT)")
    shop.db.execute("INSERT INTO t VALUES (1)")
    shop.tick(1_000)
    assert not files(shop)
    shop.crash()
    assert [c.collection for c in shop.db._store.collections("held/")] == []
