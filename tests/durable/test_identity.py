"""A database keeps its id."""

from __future__ import annotations

from memory_store import MemoryDisk, MemoryStore
from reclock.durable.identity import identity_of


def test_it_stays_and_is_nobody_elses() -> None:
    disk = MemoryDisk()
    first = identity_of(MemoryStore(disk))
    assert identity_of(MemoryStore(disk)) == first
    assert identity_of(MemoryStore(MemoryDisk())) != first
