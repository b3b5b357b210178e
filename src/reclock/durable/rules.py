"""The checks that every store makes, so that all of them refuse the same things.

Pure functions of a collection's state and what is asked of it. Checked through the
stores by tests/durable/test_conformance.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.durable.store import BEGINNING
from reclock.errors import InvalidCompaction, InvalidValue, NewerFormat, Unreadable
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.durable.store import Append, CollectionState, StoredUpdate
    from reclock.ids import CollectionId
    from reclock.time.antichain import Antichain

Sums = dict[tuple[Timestamp, str], int]
"""The diffs of a collection's updates by time and data, none of them zero."""


def unknown(collection: CollectionId) -> InvalidValue:
    """Return the error for a collection that does not exist."""
    message = f'collection "{collection}" does not exist'
    return InvalidValue(message, code="42704", hint="open it before using it")


def check_distinct(appends: Sequence[Append]) -> None:
    """Refuse two appends to one collection in one transaction."""
    seen: set[CollectionId] = set()
    for append in appends:
        if append.collection in seen:
            message = f'collection "{append.collection}" is appended to twice at once'
            raise InvalidValue(message)
        seen.add(append.collection)


def check_version(collection: CollectionId, stored: int | None, version: int) -> None:
    """Refuse records newer than the reader, and a version that is none."""
    if version < 1:
        message = f"record version must be at least 1, not {version}"
        raise InvalidValue(message)
    if stored is not None and stored > version:
        message = f'collection "{collection}" holds records of a newer version'
        detail = f"it holds version {stored}; this reclock reads up to version {version}"
        raise NewerFormat(message, detail=detail, hint="upgrade reclock and try again")


def check_compaction(state: CollectionState, since: Antichain[Timestamp]) -> None:
    """Refuse a since that goes back, or leaves an open collection without a readable time."""
    if not state.since.precedes(since):
        message = f'since of collection "{state.collection}" may not go back'
        raise InvalidCompaction(message, detail=f"from {state.since} to {since}")
    moves = since != state.since
    if moves and not state.upper.is_closed and not since.strictly_precedes(state.upper):
        message = f'since of collection "{state.collection}" may not reach its upper'
        raise InvalidCompaction(message, detail=f"since {since}, upper {state.upper}")


def check_readable(state: CollectionState, lower: Antichain[Timestamp]) -> None:
    """Refuse ``lower`` if updates before it may have been folded to a time beyond it."""
    told_apart = state.since == BEGINNING or state.since.strictly_precedes(lower)
    if not told_apart and not lower.is_closed:
        message = f'collection "{state.collection}" has been compacted past {lower}'
        detail = f"its since is {state.since}"
        raise Unreadable(message, detail=detail, hint="take a snapshot of the collection")


def summed(updates: Iterable[StoredUpdate]) -> Sums:
    """Return the sum of diffs for each time and data, without those that cancel.

    Raises ``InvalidValue`` for a sum that no store could keep.
    """
    sums: Sums = {}
    for update in updates:
        key = (update.time, update.data)
        sums[key] = sums.get(key, 0) + update.diff
    for (time, data), diff in sums.items():
        if not -INT64_MAX <= diff <= INT64_MAX:
            message = f"the sum {diff} of diffs at time {time} is out of range"
            raise InvalidValue(message, code="22003", detail=f"the data is {data!r}")
    return {key: diff for key, diff in sums.items() if diff}
