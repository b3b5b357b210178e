"""A disk in memory keeps a moment, and its copies go their own ways."""

from __future__ import annotations

from conformance.store.kit import append, at, fresh, up
from memory_store import MemoryDisk, MemoryStore


def test_a_copy_is_a_moment_with_its_own_future() -> None:
    disk = MemoryDisk()
    store = MemoryStore(disk)
    (c,) = fresh(store, "c")
    append(store, c, [up("x", 0)], at(0), at(1))
    moment = disk.copy()
    append(store, c, [up("y", 1)], at(1), at(2))
    store.compact(c, at(1))
    restored = MemoryStore(moment)
    assert restored.snapshot(c).updates == (up("x", 0),)
    append(restored, c, [up("z", 1)], at(1), at(5))
    assert store.state(c).upper == at(2)
    assert restored.state(c).since == at(0)


def test_stores_without_a_disk_share_nothing() -> None:
    one, other = MemoryStore(), MemoryStore()
    (c,) = fresh(one, "c")
    assert [s.collection for s in one.collections()] == [c]
    assert other.collections() == ()
