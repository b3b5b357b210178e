"""The log of writes: pending exactly until retired, through reopening and compaction."""

from __future__ import annotations

import pytest

from memory_store import MemoryStore
from reclock.arrangement.run import RunRef
from reclock.durable.store import Append, StoredUpdate
from reclock.engine.write_log import Wal
from reclock.errors import Corrupt, NewerFormat
from reclock.ids import ObjectId
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp


def run(time):
    return RunRef("t", Description(at(time), at(time + 1), at(0)), 1, 3, 5, inline=b"abc")


def publish(store, step):
    append, after = step
    assert store.append([append]) is None
    return after


def test_what_is_written_is_pending_until_it_is_retired():
    store = MemoryStore()
    wal = Wal.open(store, EPOCH_MS)
    wal = publish(
        store, wal.write(Timestamp(5), [(ObjectId("u1"), run(5)), (ObjectId("u2"), run(5))])
    )
    wal = publish(store, wal.write(Timestamp(9), [(ObjectId("u1"), run(9))]))
    assert Wal.open(store, EPOCH_MS) == wal
    assert [e.table for e in wal.pending] == ["u1", "u2", "u1"]
    assert [e.run for e in wal.of_table(ObjectId("u1"))] == [run(5), run(9)]
    assert wal.upper == at(10)
    wal = publish(store, wal.retire(Timestamp(10)))
    assert wal.pending == ()
    assert Wal.open(store, EPOCH_MS) == wal


def test_what_is_retired_is_gone_and_what_is_pending_is_kept():
    store = MemoryStore()
    wal = Wal.open(store, EPOCH_MS)
    for time in (1, 3):
        wal = publish(store, wal.write(Timestamp(time), [(ObjectId("u1"), run(time))]))
        wal = publish(store, wal.retire(Timestamp(time + 1)))
    wal = publish(store, wal.write(Timestamp(7), [(ObjectId("u1"), run(7))]))
    assert len(store.snapshot(wal.collection).updates) == 1
    assert Wal.open(store, EPOCH_MS) == wal


def test_what_is_pending_for_some_tables_goes_with_them():
    store, one, two = MemoryStore(), ObjectId("u1"), ObjectId("u2")
    wal = publish(
        store, Wal.open(store, EPOCH_MS).write(Timestamp(5), [(one, run(5)), (two, run(5))])
    )
    wal = publish(store, wal.write(Timestamp(9), [(two, run(9)), (one, run(9))]))
    wal = publish(store, wal.without({two}))
    assert [(e.table, int(e.time)) for e in wal.pending] == [("u1", 5), ("u1", 9)]
    assert wal.upper == at(11)
    assert Wal.open(store, EPOCH_MS) == wal
    wal = publish(store, wal.retire(Timestamp(5)))
    assert [int(e.time) for e in wal.pending] == [9]
    assert Wal.open(store, EPOCH_MS) == wal


def test_a_write_without_rows_still_moves_time():
    store = MemoryStore()
    wal = publish(store, Wal.open(store, EPOCH_MS).write(Timestamp(4), {}))
    assert (wal.pending, wal.upper) == ((), at(5))


@pytest.mark.parametrize(
    ("record", "error"),
    [("nonsense", Corrupt), ('{"v": 1}', Corrupt),
     ('{"v": 9, "table": "u1", "seq": 0, "run": {}}', NewerFormat)],
)  # fmt: skip
def test_a_record_that_does_not_decode_is_an_error(record, error):
    store = MemoryStore()
    wal = Wal.open(store, EPOCH_MS)
    update = StoredUpdate(record, Timestamp(0), 1)
    store.append([Append(wal.collection, (update,), at(0), at(1))])
    with pytest.raises(error):
        Wal.open(store, EPOCH_MS)
