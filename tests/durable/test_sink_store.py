"""What is known of sinks: it grows, it stays, it goes with them."""

from __future__ import annotations

from memory_store import MemoryDisk, MemoryStore
from reclock.durable.sink_store import SinkStore
from reclock.ids import CollectionId, ObjectId
from reclock.time.frontier import CLOSED, at

ONE, TWO = ObjectId("u1"), ObjectId("u2")


def test_it_grows_and_outlives_its_process() -> None:
    disk = MemoryDisk()
    store = SinkStore(MemoryStore(disk))
    assert store.known(ONE) is None
    store.advance(ONE, at(7))
    store.advance(ONE, at(7))
    store.advance(ONE, at(5))
    assert store.known(ONE) == at(7)
    store = SinkStore(MemoryStore(disk))
    assert (store.known(ONE), store.known(TWO)) == (at(7), None)
    store.advance(ONE, CLOSED)
    assert store.known(ONE) == CLOSED


def test_it_goes_with_its_sink() -> None:
    kept = MemoryStore()
    kept.open(CollectionId("sinks"), 1)
    store = SinkStore(kept)
    store.advance(ONE, at(3))
    store.advance(TWO, at(4))
    store.drop_others([TWO])
    assert (store.known(ONE), store.known(TWO)) == (None, at(4))
    assert [s.collection for s in kept.collections("sinks")] == ["sinks"]
