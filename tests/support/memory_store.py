"""A store in memory, for tests: the semantics of the others without a disk.

``MemoryDisk`` is what survives a crash, ``MemoryStore`` is a process using it. A crash is
to forget the store and open another on the same disk; the forgotten one is fenced, as in
PostgreSQL. Commit is the only place that changes the disk, and cannot fail half-way.
``MemoryDisk.copy`` keeps a moment, to try different futures from it.

Checked, as a store, by tests/durable/test_conformance.py.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from reclock.durable import rules
from reclock.durable.store import (
    BEGINNING,
    Append,
    CollectionState,
    Snapshot,
    StoredUpdate,
    UpperMismatch,
)
from reclock.errors import Fenced, StorageError
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from reclock.durable.rules import Sums
    from reclock.ids import CollectionId
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp


@dataclass(slots=True)
class MemoryDisk:
    """What is durable: collections, their updates, and who owns them."""

    states: dict[CollectionId, CollectionState] = field(default_factory=dict)
    sums: dict[CollectionId, Sums] = field(default_factory=dict)
    epoch: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def copy(self) -> MemoryDisk:
        """Return the durable contents of this moment."""
        with self.lock:
            sums = {collection: dict(kept) for collection, kept in self.sums.items()}
            return MemoryDisk(dict(self.states), sums, self.epoch)


class MemoryStore:
    """The owner of ``disk`` from now on.

    >>> from reclock.ids import CollectionId
    >>> disk = MemoryDisk()
    >>> MemoryStore(disk).open(CollectionId("remap/u1"), 1).upper
    {0}
    >>> MemoryStore(disk).state(CollectionId("remap/u1")).upper
    {0}
    """

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self._disk = MemoryDisk() if disk is None else disk
        self._closed = False
        with self._disk.lock:
            self._disk.epoch += 1
            self._epoch = self._disk.epoch

    def open(self, collection: CollectionId, version: int) -> CollectionState:
        """Return the state of ``collection``, creating it if there is none."""
        with self._disk.lock:
            self._check_owner()
            found = self._disk.states.get(collection)
            rules.check_version(collection, found.version if found else None, version)
            if found is None:
                found = CollectionState(collection, version, BEGINNING, BEGINNING)
                self._disk.sums[collection] = {}
            state = self._disk.states[collection] = replace(found, version=version)
            return state

    def state(self, collection: CollectionId) -> CollectionState:
        """Return the frontiers of ``collection``."""
        with self._disk.lock:
            return self._get(collection)

    def collections(self, prefix: str = "") -> tuple[CollectionState, ...]:
        """Return the collections whose id begins with ``prefix``, sorted by id."""
        with self._disk.lock:
            self._check_open()
            ids = sorted(c for c in self._disk.states if c.startswith(prefix))
            return tuple(self._disk.states[c] for c in ids)

    def snapshot(self, collection: CollectionId) -> Snapshot:
        """Return all updates, with the frontiers of the same moment."""
        return self._read(collection, BEGINNING)

    def updates(self, collection: CollectionId, lower: Antichain[Timestamp]) -> Snapshot:
        """Return the updates beyond ``lower``."""
        snapshot = self._read(collection, lower)
        rules.check_readable(snapshot.state, lower)
        return snapshot

    def append(self, appends: Sequence[Append]) -> UpperMismatch | None:
        """Append to every collection, or to none and say whose upper was another."""
        rules.check_distinct(appends)
        if not appends:
            return None
        with self._disk.lock:
            self._check_owner()
            for append in appends:
                current = self._get(append.collection).upper
                if current != append.expected_upper:
                    return UpperMismatch(append.collection, current)
            hit("durable.append.before")
            after = [self._appended(append) for append in appends]
            hit("durable.commit.before")
            for state, sums in after:
                self._disk.states[state.collection] = state
                self._disk.sums[state.collection] = sums
        hit("durable.commit.after")
        return None

    def compact(self, collection: CollectionId, since: Antichain[Timestamp]) -> None:
        """Advance since, and sum what it folds."""
        with self._disk.lock:
            self._check_owner()
            state = self._get(collection)
            rules.check_compaction(state, since)
            hit("durable.compact.before")
            sums = _folded(self._disk.sums[collection], since)
            hit("durable.compact.folded")
            self._disk.states[collection] = replace(state, since=since)
            self._disk.sums[collection] = sums
        hit("durable.compact.after")

    def drop(self, collection: CollectionId) -> None:
        """Forget the collection whole; nothing happens if there is none."""
        with self._disk.lock:
            self._check_owner()
            self._disk.states.pop(collection, None)
            self._disk.sums.pop(collection, None)

    def check_owner(self) -> None:
        """Raise ``Fenced`` unless this process owns the store, now."""
        with self._disk.lock:
            self._check_owner()

    def close(self) -> None:
        """Give the store up; nothing durable changes."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, collection: CollectionId, lower: Antichain[Timestamp]) -> Snapshot:
        with self._disk.lock:
            state = self._get(collection)
            kept = sorted(self._disk.sums[collection].items())
        found = (StoredUpdate(data, time, diff) for (time, data), diff in kept)
        return Snapshot(state, tuple(u for u in found if lower.less_equal(u.time)))

    def _appended(self, append: Append) -> tuple[CollectionState, Sums]:
        """Return a collection after an append, and what is in it then."""
        state = replace(self._get(append.collection), upper=append.new_upper)
        sums = self._disk.sums[append.collection] | rules.summed(append.updates)
        if not append.updates or append.since is None:
            return state, sums
        rules.check_compaction(state, append.since)
        return replace(state, since=append.since), _folded(sums, append.since)

    def _get(self, collection: CollectionId) -> CollectionState:
        self._check_open()
        state = self._disk.states.get(collection)
        if state is None:
            raise rules.unknown(collection)
        return state

    def _check_owner(self) -> None:
        self._check_open()
        if self._epoch != self._disk.epoch:
            message = "another process took over this state"
            detail = f"owner number {self._disk.epoch} holds it; this one was {self._epoch}"
            raise Fenced(message, detail=detail)

    def _check_open(self) -> None:
        if self._closed:
            message = "the durable store is closed"
            raise StorageError(message)


def _folded(sums: Sums, since: Antichain[Timestamp]) -> Sums:
    """Return what is left of a collection that is compacted to ``since``."""
    return rules.summed(
        StoredUpdate(data, time if since.less_equal(time) else since.element(), diff)
        for (time, data), diff in sums.items()
        if not since.is_closed
    )
