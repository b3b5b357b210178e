"""Pieces that wait: records by number, changed in one append, gone with their source."""

from __future__ import annotations

import pytest

from memory_store import MemoryStore
from reclock.durable.held_store import VERSION, Held, drop_others
from reclock.durable.keyed import Contents
from reclock.errors import NewerFormat
from reclock.ids import CollectionId, ObjectId
from reclock.time.frontier import at

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


def test_records_of_version_1_are_read_and_newer_ones_refused():
    store, name = MemoryStore(), CollectionId("held/u1")
    store.open(name, 1)
    append, _ = Contents.read(store.snapshot(name)).change({f"{3:016}": {"a": 1}}, at(1))
    assert store.append([append]) is None
    assert Held.open(store, ONE).records() == {3: {"a": 1}}
    assert store.state(name).version == VERSION
    store.open(name, VERSION + 1)
    with pytest.raises(NewerFormat):
        Held.open(store, ONE)
