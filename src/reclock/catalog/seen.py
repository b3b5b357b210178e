"""What the text of a view calls a relation and its columns, if they have other names by now.

The text of a view is kept as it was written. When a relation that it names is renamed, or gets,
loses or renames columns, the view's record says what it saw: a ``Seen``, the name, and the columns
in their order, each with its place in the relation as it is now. So ``SELECT *`` has the columns
that it had, and a name means what it meant.

Tests: tests/session/test_alter_table.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from reclock.ids import ObjectId
from reclock.sql.names import CatalogItem, CatalogView
from reclock.sql.plan.relation import Get, Project, column
from reclock.sql.schema import Column, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any


class Seen(NamedTuple):
    """A relation as a view saw it when it was made."""

    item: ObjectId
    name: str
    columns: tuple[tuple[str, int], ...]

    def record(self) -> list[object]:
        """Return what the catalog stores."""
        return [self.item, self.name, [list(pair) for pair in self.columns]]

    @classmethod
    def read(cls, stored: Iterable[Any]) -> tuple[Seen, ...]:
        """Return what the catalog has stored."""
        found = []
        for relation, called, listed in stored:
            pairs = tuple((str(n), int(at)) for n, at in listed)
            found.append(cls(ObjectId(relation), str(called), pairs))
        return tuple(found)


class _Named(Protocol):
    """An object of the catalog."""

    @property
    def name(self) -> str:
        """What it is called."""


class _Catalog(CatalogView, Protocol):
    """The catalog as it is now."""

    @property
    def items(self) -> Mapping[ObjectId, _Named]:
        """All objects."""


class SeenCatalog:
    """A catalog in which some relations are as a view saw them."""

    def __init__(self, catalog: _Catalog, seen: Sequence[Seen]) -> None:
        self._catalog = catalog
        self.items = catalog.items
        self._by_name = {one.name: one for one in seen}
        self._hidden = {one.item for one in seen}

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        """Return the relation that the view calls so."""
        one = self._by_name.get(name[-1]) if _is_plain(name) else None
        if one is None:
            found = self._catalog.resolve(name)
            return None if found is not None and found.id in self._hidden else found
        item = self._catalog.items.get(one.item)
        known = None if item is None else self._catalog.resolve((item.name,))
        return None if known is None else as_seen(known, one)

    def relation_names(self) -> tuple[str, ...]:
        """Return the names of all relations."""
        return self._catalog.relation_names()


def _is_plain(name: tuple[str, ...]) -> bool:
    return len(name) == 1 or name[-2] == "public"


def as_seen(known: CatalogItem, seen: Seen) -> CatalogItem:
    """Return a relation with the columns that a view sees."""
    node = known.plan or Get(known.id, known.name, known.schema, known.timeline, known.unique_keys)
    if [at for _, at in seen.columns] == list(range(node.width)) and all(
        known.schema[at].name == name for name, at in seen.columns
    ):
        return CatalogItem(
            known.id, seen.name, known.kind, known.schema, known.timeline, known.unique_keys,
            known.plan,
        )  # fmt: skip
    plan = Project(node, tuple((name, column(node, at)) for name, at in seen.columns))
    schema = Schema(
        tuple(
            Column(name, known.schema[at].type, known.schema[at].nullable)
            for name, at in seen.columns
        )
    )
    return CatalogItem(
        known.id, seen.name, known.kind, schema, known.timeline, plan.unique_keys, plan
    )
