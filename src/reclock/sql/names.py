"""Names: what the catalog offers, and which columns a name can mean where it stands.

``CatalogView`` is all that planning needs of the catalog, read-only. A ``Scope`` is the
columns of one FROM clause with the scope of the enclosing query behind it: the nearest
scope that knows a name wins; two columns of one scope that fit are ambiguous (42702); none
is an error with the nearest name as a hint (42703, or 42P01 for the relation).
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Protocol

from reclock.errors import AmbiguousName, UndefinedName
from reclock.sql.plan.scalar import ColumnRef, OuterRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Keys, Node
    from reclock.sql.schema import Schema
    from reclock.sql.syntax.expression import Name
    from reclock.sql.types import Type
    from reclock.time.timeline import Timeline


_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class CatalogItem:
    """A relation of the catalog.

    ``plan`` is set for views that are not materialized: they stand for their query.
    ``timeline`` None is a relation that holds at every time.
    """

    id: ObjectId
    name: str
    kind: str
    schema: Schema
    timeline: Timeline | None = None
    unique_keys: Keys = frozenset()
    plan: Node | None = None


class CatalogView(Protocol):
    """The catalog as planning sees it."""

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        """Return the relation of that name, qualified or not, or None."""
        ...

    def relation_names(self) -> tuple[str, ...]:
        """Return the names of all relations, for hints."""
        ...


def resolve_relation(catalog: CatalogView, name: Name) -> CatalogItem:
    """Return the relation, or raise 42P01 with the nearest name."""
    item = catalog.resolve(name.parts)
    if item is not None:
        return item
    hint = near_hint(name, catalog.relation_names())
    message = f'relation "{name}" does not exist'
    raise UndefinedName(message, code="42P01", hint=hint, position=name.position)


def near_hint(name: Name, known: Iterable[str]) -> str:
    """Return a hint with the nearest of the known names; some are qualified.

    A name that is right but for its schema is the nearest.
    """
    names = tuple(known)
    last = name.parts[-1]
    near = [n for n in names if n.rpartition(".")[2] == last]
    near += get_close_matches(str(name), names, n=1) or get_close_matches(last, names, n=1)
    if near:
        return f'perhaps you meant "{near[0]}"'
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"there are {shown}" if names else "there are none yet"


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that a name can mean; ``qualified_only`` ones are merged away by USING."""

    table: str | None
    name: str
    index: int
    type: Type
    nullable: bool = True
    qualified_only: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of one FROM clause, by position in its rows."""

    columns: tuple[ScopeColumn, ...] = ()

    @property
    def tables(self) -> frozenset[str]:
        """The aliases that qualify columns."""
        return frozenset(c.table for c in self.columns if c.table is not None)

    def matching(self, parts: tuple[str, ...]) -> list[ScopeColumn]:
        """Return the columns that ``parts`` can mean here."""
        name, table = parts[-1], parts[-2] if len(parts) > 1 else None
        return [
            c
            for c in self.columns
            if c.name == name and (c.table == table if table else not c.qualified_only)
        ]

    def star(self, qualifier: str | None) -> list[ScopeColumn]:
        """Return the columns of ``*`` or ``t.*``."""
        if qualifier is None:
            return [c for c in self.columns if not c.qualified_only]
        return [c for c in self.columns if c.table == qualifier]

    def shifted(self, by: int) -> Scope:
        """Return the scope of the same columns ``by`` places further on."""
        return Scope(
            tuple(
                ScopeColumn(c.table, c.name, c.index + by, c.type, c.nullable, c.qualified_only)
                for c in self.columns
            )
        )

    def __add__(self, other: Scope) -> Scope:
        return Scope(self.columns + other.columns)


def resolve_column(name: Name, scopes: tuple[Scope, ...]) -> ColumnRef | OuterRef:
    """Return what ``name`` means; ``scopes`` go from the innermost outwards."""
    for depth, scope in enumerate(scopes):
        found = scope.matching(name.parts)
        if len(found) > 1:
            message = f'column reference "{name}" is ambiguous'
            tables = sorted({str(c.table) for c in found})
            hint = f"qualify it with one of {', '.join(tables)}"
            raise AmbiguousName(message, hint=hint, position=name.position)
        if found:
            c = found[0]
            if depth == 0:
                return ColumnRef(c.index, c.type, c.nullable, c.name)
            return OuterRef(depth, c.index, c.type, c.nullable, c.name)
    raise _undefined(name, scopes)


def columns_hint(*scopes: Scope) -> str:
    """Return what there is, for a name that is not there."""
    names = list(dict.fromkeys(c.name for s in scopes for c in s.columns))
    if not names:
        return "no columns can be used here"
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"there are the columns {shown}"


def _undefined(name: Name, scopes: tuple[Scope, ...]) -> UndefinedName:
    if len(name.parts) > 1 and not any(name.parts[-2] in s.tables for s in scopes):
        message = f'missing FROM-clause entry for table "{name.parts[-2]}"'
        near = get_close_matches(name.parts[-2], [t for s in scopes for t in s.tables], n=1)
        tables = sorted({t for s in scopes for t in s.tables})
        there = f"FROM has {', '.join(tables)}" if tables else "FROM has nothing"
        hint = f'perhaps you meant the table alias "{near[0]}"' if near else there
        return UndefinedName(message, code="42P01", hint=hint, position=name.position)
    known = [c.name for s in scopes for c in s.columns]
    near = get_close_matches(name.parts[-1], known, n=1)
    hint = f'perhaps you meant the column "{near[0]}"' if near else columns_hint(*scopes)
    return UndefinedName(f'column "{name}" does not exist', hint=hint, position=name.position)
