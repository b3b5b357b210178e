"""map, filter, flat-map, union: on the updates alone, whatever the contents are.

An operator is linear when f(a + b) = f(a) + f(b). Then the image of a change is the change
of the image, diffs of any sign included, and no state is needed. ``update.negate`` is the
fifth of them. Results are consolidated.

Checked at every time in tests/change/test_model.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from model.consolidate import consolidate
from reclock.change.update import Update
from reclock.change.value import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reclock.time.order import T


def flat_map(
    updates: Iterable[Update[Any, T]], function: Callable[[Any], Iterable[Any]]
) -> list[Update[Any, T]]:
    """Return every row that ``function`` makes of each row."""
    return consolidate(
        Update(made, time, diff)
        for data, time, diff in updates
        for made in function(canonical(data))
    )


def map_rows(
    updates: Iterable[Update[Any, T]], function: Callable[[Any], Any]
) -> list[Update[Any, T]]:
    """Return ``function`` of each row."""
    return flat_map(updates, lambda data: (function(data),))


def filter_rows(
    updates: Iterable[Update[Any, T]], predicate: Callable[[Any], bool | None]
) -> list[Update[Any, T]]:
    """Return the rows for which ``predicate`` is true; NULL (``None``) is not true."""
    return flat_map(updates, lambda data: (data,) if predicate(data) else ())


def union(*collections: Iterable[Update[Any, T]]) -> list[Update[Any, T]]:
    """Return all rows of all ``collections``: UNION ALL."""
    return consolidate(update for collection in collections for update in collection)
