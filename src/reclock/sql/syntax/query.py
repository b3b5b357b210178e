"""Queries as written: SELECT, set operations, VALUES, and what stands in FROM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression, Name, SortItem, WindowText


@dataclass(frozen=True, slots=True)
class Alias:
    """``AS name (columns)``."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableName:
    """A relation by name."""

    name: Name
    alias: Alias | None = None


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A query in FROM; ``source`` is the name of the source that it asks about, if it is one."""

    query: Query
    alias: Alias | None = None
    lateral: bool = False
    source: Expression | None = None


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function in FROM; it sees the columns to its left, as if LATERAL were written."""

    name: str
    arguments: tuple[Expression, ...]
    alias: Alias | None = None
    ordinality: bool = False
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class JoinText:
    """A join; ``kind`` is inner, left, right, full or cross.

    A comma in FROM is a cross join of what stands before it with the whole item behind it.
    """

    kind: str
    left: FromItem
    right: FromItem
    on: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


FromItem = TableName | DerivedTable | TableFunction | JoinText


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An output expression and its name, if it was given one."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """One GROUP BY item: the sets of expressions it stands for; a plain one has a single set."""

    sets: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Select:
    """``SELECT … FROM … WHERE … GROUP BY … HAVING …``."""

    items: tuple[SelectItem, ...]
    source: FromItem | None = None
    where: Expression | None = None
    group_by: tuple[GroupingSets, ...] = ()
    having: Expression | None = None
    distinct: bool = False
    distinct_on: tuple[Expression, ...] = ()
    windows: tuple[tuple[str, WindowText], ...] = ()


@dataclass(frozen=True, slots=True)
class SetOperation:
    """``left UNION | EXCEPT | INTERSECT [ALL] right``."""

    operator: str
    every: bool
    left: Query
    right: Query


@dataclass(frozen=True, slots=True)
class Values:
    """``VALUES (…), (…)``."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """One entry of WITH."""

    alias: Alias
    query: Query


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query: WITH, body, ORDER BY, LIMIT, OFFSET."""

    body: Select | SetOperation | Values | Query
    common: tuple[CommonTable, ...] = ()
    order_by: tuple[SortItem, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
