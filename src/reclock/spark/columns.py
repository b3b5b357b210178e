"""The columns of a relation as Spark SQL names them, and how they sort.

A relation in Spark has the columns ``c0, …, c{n−1}``; plans refer to them by position, text
by these names. Sorting is PostgreSQL's: NULLs where the key says, inside arrays and records
last, text by code points. Spark puts NULLs inside arrays first, so arrays and records are
sorted by a text made of them. ``total_order`` breaks ties by all columns, in order,
ascending, NULLs last, exactly as ``ordering.order_of`` does.

Tests: tests/spark/test_batch.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.sql.plan.node import SortKey
from reclock.sql.plan.spark_literal import quote_name
from reclock.sql.types import Array, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.sql.schema import Schema
    from reclock.sql.types import Type


@dataclass(frozen=True)
class Columns:
    """Names and types of the columns that some text is over, by position."""

    names: tuple[str, ...]
    kinds: tuple[Type, ...]

    @classmethod
    def of(cls, schema: Schema) -> Columns:
        """Return the columns ``c0, c1, …`` of a relation.

        >>> from reclock.sql.schema import Column, Schema
        >>> from reclock.sql.types import TEXT
        >>> Columns.of(Schema((Column("name", TEXT),))).names
        ('c0',)
        """
        names = tuple(f"c{i}" for i in range(len(schema)))
        return cls(names, tuple(c.type for c in schema))

    def __getitem__(self, index: int) -> str:
        """Return the column, quoted."""
        return quote_name(self.names[index])

    def __len__(self) -> int:
        return len(self.names)

    def some(self, indices: Iterable[int]) -> list[str]:
        """Return these columns, quoted."""
        return [self[i] for i in indices]

    @property
    def all(self) -> list[str]:
        """All columns, quoted."""
        return self.some(range(len(self)))

    def sortable(self, index: int) -> str:
        """Return text that sorts as the column does in PostgreSQL; NULL for NULL."""
        return _sortable(self[index], self.kinds[index])


def _sortable(text: str, kind: Type, depth: int = 0) -> str:
    match kind:
        case Array():
            each = f"y{depth}"
            inside = _sortable(each, kind.element, depth + 1)
            return f"transform({text}, {each} -> struct({each} IS NULL, {inside}))"
        case Record():
            fields = [(f"{text}.{quote_name(name)}", t) for name, t in kind.fields]
            parts = [f"{field} IS NULL, {_sortable(field, t, depth)}" for field, t in fields]
            return f"CASE WHEN {text} IS NOT NULL THEN struct({', '.join(parts)}) END"
    return text


def with_ties(order: Sequence[SortKey], width: int) -> tuple[SortKey, ...]:
    """Return ``order`` followed by every other column, ascending, NULLs last."""
    said = {key.column for key in order}
    return (*order, *(SortKey(i) for i in range(width) if i not in said))


def order_text(order: Sequence[SortKey], columns: Columns) -> str:
    """Return what follows ORDER BY.

    >>> from reclock.sql.types import TEXT
    >>> order_text((SortKey(0, descending=True, nulls_first=True),), Columns(("a",), (TEXT,)))
    '`a` DESC NULLS FIRST'
    """
    parts = []
    for key in order:
        direction = "DESC" if key.descending else "ASC"
        nulls = "FIRST" if key.nulls_first else "LAST"
        parts.append(f"{columns.sortable(key.column)} {direction} NULLS {nulls}")
    return ", ".join(parts)


def total_order(order: Sequence[SortKey], columns: Columns) -> str:
    """Return what follows ORDER BY for an order that leaves only equal rows in ties."""
    return order_text(with_ties(order, len(columns)), columns)
