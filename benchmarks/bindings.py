"""A source's bindings, extended and compacted in a store as ticks do, without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.durable.remap_store import RemapStore
from reclock.ids import ObjectId
from reclock.remap.codec import KAFKA
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from reclock.durable.store import Store
    from reclock.time.position import KafkaPosition
    from reclock.time.timestamp import Timestamp


class Bindings:
    """The remap of one source, in a store."""

    def __init__(self, store: Store, source: str) -> None:
        self.store = store
        self.handle = RemapStore(store, ObjectId(source), KAFKA)
        self.remap = self.handle.load()

    def bind(self, time: Timestamp, frontier: Antichain[KafkaPosition]) -> None:
        """Bind ``frontier`` at ``time``, durably."""
        updates = self.remap.changes(time, frontier)
        upper = Antichain.of(time.step())
        self.store.append([self.handle.as_append(updates, self.remap.upper, upper)])
        self.remap = self.remap.extended(updates, upper)

    def compact(self, since: Timestamp) -> None:
        """Fold what is at or before ``since``, durably."""
        self.handle.compact(since)
        self.remap = self.remap.compacted(since)
