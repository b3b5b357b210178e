"""The positions of sequences: one record for each that has given a number.

A record is written ahead of the numbers: after a crash a sequence goes on after all that may have
been given. ``catalog.serial.values`` decides which numbers these are.

Checked by tests/session/test_sequences.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.durable.keyed import Contents, Json
from reclock.errors import StorageError
from reclock.ids import CollectionId, ObjectId
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.durable.store import Store

SEQUENCES: Final = CollectionId("sequences")
VERSION: Final = 1


class SequenceStore:
    """The records of sequences kept in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.open(SEQUENCES, VERSION)
        self._contents = Contents.read(store.snapshot(SEQUENCES))

    def load(self) -> dict[ObjectId, Json]:
        """Read all records again, and return them."""
        self._contents = Contents.read(self._store.snapshot(SEQUENCES))
        return {ObjectId(key): value for key, value in self._contents.values().items()}

    def change(self, changes: Mapping[ObjectId, Json | None]) -> None:
        """Change some records durably; None removes one."""
        upper = Antichain.of(self._contents.state.upper.element().step())
        keyed = {str(item): record for item, record in changes.items()}
        append, after = self._contents.change(keyed, upper)
        lost = self._store.append([append])
        if lost is not None:
            message = f'durable collection "{lost.collection}" has moved unexpectedly'
            raise StorageError(message, hint="try the statement again")
        self._contents = after
