"""Pieces that wait: records by number, changed in one append, gone with their source."""

from __future__ import annotations

from reclock.durable.held_store import Held, drop_others
from reclock.durable.memory import MemoryStore
from reclock.ids import ObjectId

ONE, TWO = ObjectId("u1"), ObjectId("u2")


def test_records_come_change_and_go_in_their_order():
    store = MemoryStore()
    held = Held.open(store, ONE)
    for records in ({10: {"a": 1}, 9: {"a": 2}}, {9: {"a": 3}, 100: {}}, {100: {}}, {}):
        append, held = held.changed(records)
        assert append is not None
        assert store.append([append]) is None
        assert [*Held.open(store, ONE).records().items()] == sorted(records.items())
        assert held.records() == records
        assert held.changed(records) == (None, held)


def test_what_a_source_held_goes_with_it():
    store = MemoryStore()
    for source in (ONE, TWO):
        append, _ = Held.open(store, source).changed({1: {}})
        store.append([append])
    drop_others(store, [TWO])
    assert [state.collection for state in store.collections("held/")] == ["held/u2"]
    assert Held.open(store, ONE).records() == {}
