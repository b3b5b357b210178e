"""A source's remap as a durable collection, to which ticks append.

The collection ``remap/<source id>`` holds the elements of the bound frontiers, written by
the gauge's codec; compare-and-append, compaction, versions and fencing are the store's.
Keeps P2: no output is in the store before its bindings are; a tick appends both at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from reclock.change.update import Update
from reclock.durable.store import Append, StoredUpdate
from reclock.ids import CollectionId, ObjectId
from reclock.remap.codec import VERSION, Codec
from reclock.remap.trace import Frontier, Remap
from reclock.time.antichain import Antichain
from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.durable.store import Store
    from reclock.time.timestamp import Timestamp


class RemapStore(Generic[T]):
    """The remap of one source in a ``Store``; opening it creates an unbound one if needed."""

    def __init__(self, store: Store, source: ObjectId, codec: Codec[T]) -> None:
        self._store = store
        self._codec = codec
        self._collection = CollectionId(f"remap/{source}")
        store.open(self._collection, VERSION)

    def load(self) -> Remap[T]:
        """Return the durable remap; contradictory records are ``Corrupt``."""
        snapshot = self._store.snapshot(self._collection)
        # A position is written when it comes and when it goes: decode each text once.
        positions = self._codec.decode_all({u.data for u in snapshot.updates})
        updates = [Update(positions[u.data], u.time, u.diff) for u in snapshot.updates]
        since = snapshot.since.element()
        return Remap.stored(updates, since, snapshot.upper, self._codec.origin)

    def as_append(
        self, updates: Sequence[Update[T, Timestamp]], expected: Frontier, upper: Frontier
    ) -> Append:
        """Return the append of ``updates``, to be published in one transaction with others."""
        rows = tuple(StoredUpdate(self._codec.encode(e), time, diff) for e, time, diff in updates)
        return Append(self._collection, rows, expected, upper)

    def compact(self, since: Timestamp) -> None:
        """Fold everything at or before ``since`` into ``since``."""
        self._store.compact(self._collection, Antichain.of(since))
