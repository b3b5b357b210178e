"""The catalog as a durable collection: every change of it is one step of its version.

The upper of the collection ``catalog`` is the catalog's version: changes made to version n
happen at time n and lead to version n + 1, by compare-and-append. Who changes an outdated
version loses and is told the current one. Only the present version is kept. What an item
says is the business of ``session``.

Checked by tests/durable/test_catalog_store.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.durable.keyed import Contents, Json
from reclock.ids import CollectionId, ObjectId
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.durable.store import Append, Store, UpperMismatch
    from reclock.time.timestamp import Timestamp

CATALOG: Final = CollectionId("catalog")
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Catalog:
    """The items of one version of the catalog."""

    contents: Contents

    @property
    def version(self) -> Timestamp:
        """The number of changes made so far, each new item counted."""
        return self.contents.state.upper.element()

    def items(self) -> dict[ObjectId, Json]:
        """Return the record of every item."""
        return {ObjectId(key): value for key, value in self.contents.values().items()}


class CatalogStore:
    """The catalog kept in ``store``; created empty, at version 0, if there is none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.open(CATALOG, VERSION)

    def load(self) -> Catalog:
        """Return the current catalog."""
        return Catalog(Contents.read(self._store.snapshot(CATALOG)))

    def change(
        self, catalog: Catalog, changes: Mapping[ObjectId, Json | None], steps: int = 1
    ) -> tuple[Append, Catalog]:
        """Return the append that makes ``catalog`` the next one, to publish with others.

        An item maps to its new record, or to ``None`` to be removed. The version is ``steps``
        further: one for each new item.
        """
        next_version = Antichain.of(catalog.version.step(steps))
        keyed = {str(item): record for item, record in changes.items()}
        append, contents = catalog.contents.change(keyed, next_version)
        return append, Catalog(contents)

    def append(
        self, catalog: Catalog, changes: Mapping[ObjectId, Json | None]
    ) -> Catalog | UpperMismatch:
        """Change the catalog durably; on a lost race return where it is instead."""
        append, changed = self.change(catalog, changes)
        return self._store.append([append]) or changed
