"""A catalog that remembers which relations a query has asked for: what a view depends on.

Tests: tests/catalog/test_catalog.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.seen import SeenCatalog
    from reclock.ids import ObjectId
    from reclock.sql.names import CatalogItem


class Recording:
    """A catalog that remembers which relations were asked for."""

    def __init__(self, catalog: Catalog | SeenCatalog) -> None:
        self._catalog = catalog
        self.found: set[ObjectId] = set()
        self.system: set[ObjectId] = set()
        """Those of the system, which nothing depends on: they are always there."""

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        """Return the relation of that name, and remember it."""
        item = self._catalog.resolve(name)
        if item is not None:
            (self.found if item.id in self._catalog.items else self.system).add(item.id)
        return item

    def relation_names(self) -> tuple[str, ...]:
        """Return the names of all relations."""
        return self._catalog.relation_names()
