"""The first rows of each group in an order, on contents: ORDER BY … LIMIT k OFFSET n.

Rows are taken with their multiplicities. Rows that the order does not tell apart follow
the ``sort_key`` of the whole row, so the answer is a function of the contents.

Contents must be a multiset (``NegativeCount`` otherwise). Checked against SQLite's
row_number: tests/change/test_model_sql.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from model.reduce import grouped
from reclock.change.value import Row, sort_key

if TYPE_CHECKING:
    from model.consolidate import Rows
    from model.join import Key


@dataclass(frozen=True, slots=True)
class Order:
    """One column of ORDER BY, with PostgreSQL's NULLs: last ascending, first descending."""

    column: int
    descending: bool = False


def top_k(rows: Rows, key: Key, order: tuple[Order, ...], limit: int, offset: int = 0) -> Rows:
    """Return of each group the ``limit`` rows after the first ``offset``.

    >>> from model.join import columns
    >>> bids = Counter({("car", 10): 1, ("car", 30): 2, ("hat", 5): 1})
    >>> top_k(bids, columns(0), (Order(1, descending=True),), 2)
    Counter({('car', 30): 2, ('hat', 5): 1})
    """
    return Counter(
        row
        for _, group in grouped(rows, key, "top-k")
        for row in _ordered(group, order)[offset : offset + limit]
    )


def _ordered(group: list[Row], order: tuple[Order, ...]) -> list[Row]:
    """Sort by the last column first: Python's sort is stable, also in reverse."""
    for by in reversed(order):

        def column_key(row: Row, column: int = by.column) -> Any:
            return sort_key(row[column])

        group = sorted(group, key=column_key, reverse=by.descending)
    return group
