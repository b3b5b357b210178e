"""Aggregation, on contents: any Python function of the rows of a group.

A group is the rows with the same key, NULLs being one key here. The aggregate gets the
group's rows as a list, each as often as it occurs, in the order of ``sort_key``, so that
aggregates that depend on order (array_agg, a float sum) are still functions of contents.
It returns the aggregate columns; the result row is the key followed by them.

A group exists while it has a row; ``reduce_all`` is SQL's aggregation without GROUP BY,
which has one result row even over no rows at all.

Contents must be a multiset (``NegativeCount`` otherwise). Checked against SQLite:
tests/change/test_model_sql.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from model.incremental import check_multiset
from reclock.change.value import Row, canonical, sort_key

if TYPE_CHECKING:
    from model.consolidate import Rows
    from model.join import Key

Aggregate = Callable[[list[Row]], Row]


def reduce(rows: Rows, key: Key, aggregate: Aggregate) -> Rows:
    """Return one row per group: its key and its aggregates.

    >>> from model.join import columns
    >>> sales = Counter({("eu", 5): 2, ("us", 1): 1})
    >>> reduce(sales, columns(0), lambda group: (len(group), sum(amount for _, amount in group)))
    Counter({('eu', 2, 10): 1, ('us', 1, 1): 1})
    """
    return Counter(
        canonical(made + aggregate(group)) for made, group in grouped(rows, key, "reduce")
    )


def reduce_all(rows: Rows, aggregate: Aggregate) -> Rows:
    """Return the one row of aggregates over all rows, or over none.

    >>> reduce_all(Counter(), lambda group: (len(group),))
    Counter({(0,): 1})
    """
    check_multiset(rows, "reduce")
    return Counter([canonical(aggregate(_listed(rows)))])


def grouped(rows: Rows, key: Key, operator: str) -> list[tuple[Row, list[Row]]]:
    """Return the key and the sorted list of rows of every group; ``rows`` is a multiset."""
    check_multiset(rows, operator)
    groups: defaultdict[Row, Rows] = defaultdict(Counter)
    for row, count in rows.items():
        if count:
            groups[canonical(key(row))][row] = count
    return [(made, _listed(group)) for made, group in groups.items()]


def _listed(rows: Rows) -> list[Row]:
    return sorted(rows.elements(), key=sort_key)
