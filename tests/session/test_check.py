"""``db.check()``: a whole state has no findings, every kind of damage has one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reclock.dataflow.graph import collection_of
from reclock.ids import HolderId
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp


@pytest.fixture
def shop(db, opener):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    db.execute("CREATE INDEX i ON t (a)")
    for n in range(20):
        opener.clock.advance(1_000)
        db.insert("t", [(n * 500 + k, k) for k in range(500)])
        db.tick()
        db._core.merger.wait()
    return db


def state(db):
    (found,) = db._core.world.timelines.values()
    return found


def largest_run(db, name):
    item = db._core.world.catalog.find((name,)).id
    runs = state(db).arrangements.runs[collection_of(item)]
    return max((r for r in runs if r.segment), key=lambda r: r.length)


def damage(db, **changes):
    damaged = replace(state(db), **changes)
    db._core._world = db._core.world.with_states([damaged])


def only_finding(db):
    (found,) = db.check()
    return found


def test_a_whole_state_has_no_findings(shop, opener):
    assert shop.check() == []
    shop.insert("t", [(100_000 + n, n) for n in range(10_000)])
    assert shop.check() == []  # with a large write pending
    with shop._core.hold(HolderId("test/1"), list(state(shop).sinces), state(shop).upper):
        assert shop.check() == []
    again = opener.reopened(shop)
    assert again.check() == []


def test_a_changed_byte_is_found(shop, opener):
    ref = largest_run(shop, "t")
    file = opener.path / "segments" / ref.segment
    data = bytearray(file.read_bytes())
    data[ref.offset + ref.length // 2] ^= 1
    file.write_bytes(data)
    found = only_finding(shop)
    assert (found.object, found.code) == ("t", "XX001")
    assert "checksum" in found.detail


def test_a_missing_file_is_found(shop, opener):
    ref = largest_run(shop, "t")
    (opener.path / "segments" / ref.segment).unlink()
    assert {"t"} <= {f.object for f in shop.check()}
    assert all(ref.segment in f.message for f in shop.check())


def test_a_write_that_is_not_there_any_more_is_found(shop, opener):
    shop.insert("t", [(100_000 + n, n) for n in range(10_000)])
    (entry,) = state(shop).wal.pending
    (opener.path / "segments" / entry.run.segment).unlink()
    assert only_finding(shop).object == "t"


def test_missing_and_surplus_arrangements_are_found(shop):
    whole = state(shop).arrangements
    item = collection_of(shop._core.world.catalog.find(("v",)).id)
    runs = {"elsewhere": whole.runs[item], **whole.runs}
    del runs[item]
    damage(shop, arrangements=replace(whole, runs=runs))
    assert {(f.object, f.message) for f in shop.check()} == {
        ("v", "an arrangement is missing"),
        ("elsewhere", "an arrangement belongs to no object"),
    }


def test_frontiers_that_disagree_are_found(shop):
    oracle = state(shop).oracle
    damage(shop, oracle=replace(oracle, read_ts=Timestamp(0)))
    messages = [f.message for f in shop.check()]
    assert any("in memory" in m for m in messages)
    assert any("the oracle reads at 0" in m for m in messages)


def test_runs_that_forgot_too_much_are_found(shop):
    sinces = {item: at(0) for item in state(shop).sinces}
    damage(shop, sinces=sinces)
    assert {f.message for f in shop.check()} == {"its runs have forgotten more than it may"}


def test_a_hold_on_what_is_gone_is_found(shop):
    v = shop._core.world.catalog.find(("v",)).id
    hold = shop._core.hold(HolderId("test/1"), [v], state(shop).upper)
    shop.execute("DROP MATERIALIZED VIEW v")
    found = only_finding(shop)
    assert found.object == v
    assert "test/1" in found.message
    hold.release()
    assert shop.check() == []


def test_a_transaction_that_still_reads_what_is_gone_is_no_finding(shop):
    with shop.session() as session:
        session.execute("BEGIN; SELECT count(*) FROM t")
        shop.execute("DROP TABLE t CASCADE")
        assert shop.check() == []
        assert session.execute("SELECT count(*) FROM t").rows == [(10_000,)]
    assert shop.execute("SELECT * FROM reclock.holds").rows == []


def test_a_subscription_that_does_not_know_yet_is_no_finding(shop):
    with shop.subscribe("SUBSCRIBE (SELECT count(*) FROM v)"):
        shop.execute("DROP TABLE t CASCADE")
        assert shop.check() == []
    assert shop.check() == []
