"""Statements for a closed interval of a collection.

``statements`` consolidates, so that each (data, time) is stated once, and counts what it
states. Writing the same interval again, whole or in part, in other pieces or another
order, states nothing new: a writer that does not know what it wrote before a crash writes
it again.

Round trips: tests/change/test_cdcv2_reader.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from model.consolidate import consolidate
from reclock.change.cdcv2.message import Message, Progress, Updates
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.change.update import Update
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp


def statements(
    updates: Iterable[Update[Any, Timestamp]],
    lower: Antichain[Timestamp],
    upper: Antichain[Timestamp],
    *,
    at_most: int = 1_000,
) -> Iterator[Message]:
    """Yield the updates in ``[lower, upper)``, ``at_most`` a message, then their progress.

    >>> from reclock.change.update import Update
    >>> from reclock.time.antichain import Antichain
    >>> from reclock.time.timestamp import Timestamp
    >>> at = lambda t: Antichain.of(Timestamp(t))
    >>> [type(m).__name__ for m in statements([Update({}, Timestamp(3), 1)], at(0), at(4))]
    ['Updates', 'Progress']
    """
    consolidated = consolidate(updates)
    for update in consolidated:
        if not lower.less_equal(update.time) or upper.less_equal(update.time):
            message = f"update at {update.time} is not in [{lower}, {upper})"
            raise InvalidValue(message)
    for start in range(0, len(consolidated), at_most):
        yield Updates(tuple(consolidated[start : start + at_most]))
    counts = Counter(update.time for update in consolidated)
    yield Progress(lower, upper, tuple(counts.items()))
