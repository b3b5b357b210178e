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

from reclock.errors import AmbiguousName, NotSupported, UndefinedName
from reclock.sql.plan.scalar import ColumnRef, OuterRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.errors import StatementError
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Keys, Node
    from reclock.sql.schema import Schema
    from reclock.sql.syntax.expression import Name
    from reclock.sql.types import Type
    from reclock.time.timeline import Timeline


_SHOWN: Final = 8
_SEEN: Final = (
    "ON sees the two sides of its own JOIN, which binds more tightly than a comma;"
    " a subquery in FROM sees earlier items after LATERAL"
)


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


class Nothing:
    """A catalog with nothing in it: for expressions that stand for themselves."""

    def resolve(self, name: tuple[str, ...]) -> None:
        """Return None: there is no relation."""
        del name

    def relation_names(self) -> tuple[str, ...]:
        """Return no names."""
        return ()


NOTHING: Final = Nothing()


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


_NOTHING: Final = Scope()


@dataclass(frozen=True, slots=True)
class Place:
    """One step outwards from a name: the columns it can mean there.

    ``hidden`` are those of FROM items that only LATERAL would see. Neighbours of the same
    ``level``, if it is not None, are one scope: a name that fits in two of them is ambiguous.
    """

    scope: Scope
    hidden: Scope = _NOTHING
    level: object = None


def resolve_column(name: Name, places: tuple[Place, ...]) -> ColumnRef | OuterRef:
    """Return what ``name`` means; ``places`` go from the innermost outwards."""
    found: list[tuple[int, ScopeColumn]] = []
    for depth, place in enumerate(places):
        found += ((depth, c) for c in place.scope.matching(name.parts))
        following = places[depth + 1] if depth + 1 < len(places) else None
        if place.level is not None and following is not None and following.level is place.level:
            continue
        if len(found) > 1:
            message = f'column reference "{name}" is ambiguous'
            tables = sorted({str(c.table) for _, c in found})
            hint = f"qualify it with one of {', '.join(tables)}"
            raise AmbiguousName(message, hint=hint, position=name.position)
        if found:
            at, c = found[0]
            if at == 0:
                return ColumnRef(c.index, c.type, c.nullable, c.name)
            return OuterRef(at, c.index, c.type, c.nullable, c.name)
    raise _undefined(name, places)


def columns_hint(*scopes: Scope) -> str:
    """Return what there is, for a name that is not there."""
    names = list(dict.fromkeys(c.name for s in scopes for c in s.columns))
    if not names:
        return "no columns can be used here"
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"there are the columns {shown}"


def _undefined(name: Name, places: tuple[Place, ...]) -> StatementError:
    scopes = [p.scope for p in places]
    table = name.parts[-2] if len(name.parts) > 1 else None
    if table is not None and not any(table in s.tables for s in scopes):
        if any(table in p.hidden.tables for p in places):
            return _unseen(name, table)
        message = f'missing FROM-clause entry for table "{table}"'
        near = get_close_matches(table, [t for s in scopes for t in s.tables], n=1)
        tables = sorted({t for s in scopes for t in s.tables})
        there = f"FROM has {', '.join(tables)}" if tables else "FROM has nothing"
        hint = f'perhaps you meant the table alias "{near[0]}"' if near else there
        return UndefinedName(message, code="42P01", hint=hint, position=name.position)
    if len(name.parts) == 1 and any(name.parts[0] in s.tables for s in scopes):
        message = f"a whole row as a value, {name}, is not supported"
        return NotSupported(message, hint="name its columns", position=name.position)
    known = [c.name for s in scopes for c in s.columns]
    near = get_close_matches(name.parts[-1], known, n=1)
    hint = f'perhaps you meant the column "{near[0]}"' if near else columns_hint(*scopes)
    hidden = [c for p in places for c in p.hidden.matching(name.parts)]
    detail = None
    if hidden:
        detail = (
            f'there is a column named "{name.parts[-1]}" in table "{hidden[0].table}", but it'
            " cannot be referenced from this part of the query"
        )
        hint = _SEEN
    message = f'column "{name}" does not exist'
    return UndefinedName(message, detail=detail, hint=hint, position=name.position)


def _unseen(name: Name, table: str) -> UndefinedName:
    return UndefinedName(
        f'invalid reference to FROM-clause entry for table "{table}"',
        code="42P01",
        detail=(
            f'there is an entry for table "{table}", but it cannot be referenced from this part'
            " of the query"
        ),
        hint=_SEEN,
        position=name.position,
    )


def quoted(name: str) -> str:
    """Return a name as it stands in a statement.

    >>> quoted("a_1"), quoted("A b")
    ('a_1', '"A b"')
    """
    simple = name.isidentifier() and name.isascii() and name == name.lower()
    return name if simple else '"' + name.replace('"', '""') + '"'
