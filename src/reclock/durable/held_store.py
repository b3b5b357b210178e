"""The files of updates that a source has read and may not publish yet.

The collection ``held/<source id>`` has a record for each piece that waits (``dataflow.piece``): its
references, and which of its transactions are published; of updates that bring their times, from
version 2 on, the references alone. Keys are numbers, in the order in which
the pieces were read. A tick changes it in the append that binds the positions of the pieces, so
that what is bound is published or held (P2). Files that a record names stay.

Checked by tests/durable/test_held_store.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.durable.keyed import Contents
from reclock.ids import CollectionId
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.durable.keyed import Json
    from reclock.durable.store import Append, Store
    from reclock.ids import ObjectId

VERSION: Final = 2
PREFIX: Final = "held/"


@dataclass(frozen=True, slots=True)
class Held:
    """The records of one source at one moment."""

    contents: Contents

    @classmethod
    def open(cls, store: Store, source: ObjectId) -> Held:
        """Return what is durable; nothing, if there was none."""
        collection = CollectionId(f"{PREFIX}{source}")
        store.open(collection, VERSION)
        return cls(Contents.read(store.snapshot(collection)))

    def records(self) -> dict[int, Json]:
        """Return every record, in the order of their numbers."""
        return {int(key): value for key, value in self.contents.values().items()}

    def changed(self, records: Mapping[int, Json]) -> tuple[Append | None, Held]:
        """Return the append after which these are the records, and what follows."""
        before, after = self.contents.values(), {f"{n:016}": v for n, v in records.items()}
        changes: dict[str, Json | None] = {
            key: after.get(key)
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        }
        if not changes:
            return None, self
        upper = at(self.contents.state.upper.element().step())
        append, contents = self.contents.change(changes, upper)
        return append, Held(contents)


def drop_others(store: Store, sources: Iterable[ObjectId]) -> None:
    """Forget what sources held that are gone."""
    kept = {f"{PREFIX}{source}" for source in sources}
    for state in store.collections(PREFIX):
        if state.collection not in kept:
            store.drop(CollectionId(state.collection))
