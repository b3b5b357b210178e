"""The known progress of each sink: a number that only grows.

The log of a sink says how far it is, exactly; this says how far it was at least, a moment ago.
It is what the state can hold against a log that was emptied or replaced, and how far the
history of what the sink is made of may be forgotten (``export.exporter``).

One collection per sink, without updates: its upper is the frontier. An append costs one row.

Checked by tests/durable/test_sink_store.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.durable.store import BEGINNING, Append
from reclock.ids import CollectionId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.durable.store import Store
    from reclock.ids import ObjectId
    from reclock.time.frontier import Frontier

VERSION: Final = 1
_PREFIX: Final = "sink/"


class SinkStore:
    """The frontiers of all sinks, kept in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def known(self, sink: ObjectId) -> Frontier | None:
        """Return how far a sink is known to be; None if it has never been anywhere."""
        upper = self._store.open(_collection(sink), VERSION).upper
        return None if upper == BEGINNING else upper

    def advance(self, sink: ObjectId, frontier: Frontier) -> None:
        """Remember durably that all times before ``frontier`` are written."""
        upper = self._store.open(_collection(sink), VERSION).upper
        if upper.strictly_precedes(frontier):
            self._store.append([Append(_collection(sink), (), upper, frontier)])

    def drop_others(self, sinks: Iterable[ObjectId]) -> None:
        """Forget the sinks that are gone."""
        kept = {_collection(sink) for sink in sinks}
        for state in self._store.collections(_PREFIX):
            if state.collection not in kept:
                self._store.drop(state.collection)


def _collection(sink: ObjectId) -> CollectionId:
    return CollectionId(f"{_PREFIX}{sink}")
