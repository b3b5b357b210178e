"""Joins by key, on contents: inner, left, right, full, semi, anti.

Rows are tuples; a joined row is the left row followed by the right one, and where an outer
join finds no partner, by NULLs. Keys are tuples too, made by a ``Key`` such as
``columns(0, 2)``; a key with a NULL in it matches nothing, itself included. The count of
a joined row is the product of the counts of its parts.

Inner joins are linear in both inputs. Semi, anti and outer joins ask *whether* a partner
exists, so the side that is looked up must be a multiset (``NegativeCount`` otherwise); they
stay linear in the other side.

Checked against SQLite in tests/change/test_model_sql.py, the bilinear rule
``time = max, diff = product`` in tests/change/test_model.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from model.consolidate import Rows, without_zeros
from model.incremental import check_multiset
from reclock.change.value import Row, canonical

Key = Callable[[Row], Row]


def columns(*numbers: int) -> Key:
    """Return the key made of these columns.

    >>> columns(2, 0)(("a", "b", "c"))
    ('c', 'a')
    """
    return lambda row: tuple(row[n] for n in numbers)


def inner(left: Rows, right: Rows, left_key: Key, right_key: Key) -> Rows:
    """Return the pairs of rows with equal keys.

    >>> inner(Counter({(1, "x"): 2}), Counter({(1, "y"): 3}), columns(0), columns(0))
    Counter({(1, 'x', 1, 'y'): 6})
    """
    partners = _by_key(right, right_key)
    joined: Rows = Counter()
    for row, count in left.items():
        for partner, times in partners.get(_match(row, left_key), {}).items():
            joined[row + partner] += count * times
    return without_zeros(joined)


def semi(left: Rows, right: Rows, left_key: Key, right_key: Key) -> Rows:
    """Return the left rows that have a partner: EXISTS."""
    check_multiset(right, "semi join")
    present = _by_key(right, right_key)
    return Counter({row: n for row, n in left.items() if _match(row, left_key) in present})


def anti(left: Rows, right: Rows, left_key: Key, right_key: Key) -> Rows:
    """Return the left rows that have no partner, those with NULL keys too: NOT EXISTS."""
    check_multiset(right, "anti join")
    present = _by_key(right, right_key)
    return Counter({row: n for row, n in left.items() if _match(row, left_key) not in present})


def left_outer(left: Rows, right: Rows, left_key: Key, right_key: Key, *, right_width: int) -> Rows:
    """Return the inner join, and the left rows without partner beside ``right_width`` NULLs."""
    joined = inner(left, right, left_key, right_key)
    for row, count in anti(left, right, left_key, right_key).items():
        joined[row + (None,) * right_width] += count
    return without_zeros(joined)


def right_outer(left: Rows, right: Rows, left_key: Key, right_key: Key, *, left_width: int) -> Rows:
    """Return the inner join, and the right rows without partner beside ``left_width`` NULLs."""
    joined = inner(left, right, left_key, right_key)
    for row, count in anti(right, left, right_key, left_key).items():
        joined[(None,) * left_width + row] += count
    return without_zeros(joined)


def full_outer(
    left: Rows, right: Rows, left_key: Key, right_key: Key, *, left_width: int, right_width: int
) -> Rows:
    """Return the inner join, and the rows of both sides without partner beside NULLs."""
    joined = left_outer(left, right, left_key, right_key, right_width=right_width)
    for row, count in anti(right, left, right_key, left_key).items():
        joined[(None,) * left_width + row] += count
    return without_zeros(joined)


def _match(row: Row, key: Key) -> Row | None:
    """Return the canonical key, or ``None`` if it holds a NULL and can match nothing."""
    made: Row = canonical(key(row))
    return None if None in made else made


def _by_key(rows: Rows, key: Key) -> dict[Row | None, Rows]:
    """Return ``rows`` grouped by key, without those that can match nothing."""
    groups: defaultdict[Row | None, Rows] = defaultdict(Counter)
    for row, count in rows.items():
        made = _match(row, key)
        if made is not None and count:
            groups[made][row] = count
    return dict(groups)
