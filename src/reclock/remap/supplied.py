"""Bring-your-own bindings: rows that the user supplies, as steps of a remap.

A row ``(timestamp, partition, offset)`` says: from ``timestamp`` on, offsets of
``partition`` below ``offset`` belong to it or to an earlier time. Rows may come in any
order and repeat; a partition keeps its offset until a later row moves it. They are a
remap if and only if no partition ever goes back, which is checked row pair by row pair so
that the message can name the two that contradict each other. Nothing is accepted of a
set of rows in which one pair is wrong.

What is bound stays bound: a row about a time that is complete says what is bound there, or
contradicts it, and the pair is then the row and the binding. Where a source begins, it begins:
offsets before its origin are bound from the first time on.

Cost: O(n log n) for n rows of times that are not bound yet. Properties, against the definition
of reclocking: tests/remap/test_supplied.py.
"""

from __future__ import annotations

from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from reclock.errors import BindingsNotMonotone, InvalidValue
from reclock.remap.trace import Binding
from reclock.time.position import offsets_of
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reclock.remap.trace import Remap

FIRST: Final = 1
"""The first time that rows may bind: before it everything is empty."""


class SuppliedBinding(NamedTuple):
    """One row of the user's relation."""

    timestamp: int
    partition: int | str
    offset: int

    def __str__(self) -> str:
        return f"(timestamp {self.timestamp}, partition {self.partition}, offset {self.offset})"


def check_supplied(remap: Remap[Any], rows: Iterable[SuppliedBinding]) -> list[SuppliedBinding]:
    """Return the rows about times that are not bound yet, in order; refuse what cannot be.

    >>> from reclock.remap.trace import Remap
    >>> from reclock.time.position import KafkaPosition
    >>> rows = [SuppliedBinding(10, 0, 5), SuppliedBinding(20, 0, 3)]
    >>> check_supplied(Remap.unbound(KafkaPosition.frontier({})), rows)
    Traceback (most recent call last):
    reclock.errors.BindingsNotMonotone: bindings are not monotone
    detail: (timestamp 10, partition 0, offset 5) is followed by \
(timestamp 20, partition 0, offset 3)
    hint: the offset of a partition must not decrease as the timestamp grows
    """
    ordered = sorted(set(rows))
    last: dict[int | str, SuppliedBinding] = {}
    begun = offsets_of(remap.origin)
    bound = offsets_of(remap.latest)
    for row in ordered:
        _check_row(row)
        before = last.get(row.partition)
        if before is not None and (row.offset < before.offset or row.timestamp == before.timestamp):
            _refuse(before, row)
        last[row.partition] = row
        offset = max(row.offset, begun.get(row.partition, 0))
        if not remap.upper.less_equal(Timestamp(row.timestamp)):
            _check_bound(remap, row, offset)
        elif offset < bound.get(row.partition, 0):
            _refuse(_bound_at(remap, row.partition, remap.bindings[-1].time), row)
    return [row for row in ordered if remap.upper.less_equal(Timestamp(row.timestamp))]


def steps_of(
    remap: Remap[Any], ordered: Iterable[SuppliedBinding], most: int
) -> Iterator[Binding[Any]]:
    """Yield the bindings that rows add to a remap, of ``most`` times.

    The rows are those of ``check_supplied``. A part that has not begun is like an unknown one: it
    has no place in a frontier.
    """
    position = type(next(iter(remap.origin)))
    offsets: dict[Any, int] = offsets_of(remap.latest)
    frontier = remap.latest
    for time, group in islice(groupby(ordered, key=attrgetter("timestamp")), most):
        for row in group:
            if row.offset > offsets.get(row.partition, 0):
                offsets[row.partition] = row.offset
        after = position.frontier(offsets)
        if after != frontier:
            frontier = after
            yield Binding(Timestamp(time), frontier)


def _check_row(row: SuppliedBinding) -> None:
    """Refuse a row that is no binding at all."""
    part = row.partition if isinstance(row.partition, int) else 0
    if not (FIRST <= row.timestamp < INT64_MAX and part >= 0 and 0 <= row.offset <= INT64_MAX):
        message = f"invalid binding {row}"
        detail = f"timestamps are from {FIRST} on, partitions and offsets from 0 on"
        raise InvalidValue(message, detail=detail)


def _check_bound(remap: Remap[Any], row: SuppliedBinding, offset: int) -> None:
    """Refuse a row that says of a complete time what is not bound there."""
    time = Timestamp(row.timestamp)
    if time <= remap.since:
        return  # what was bound there is not told apart any more
    found: Mapping[int | str, int] = offsets_of(remap.at(time))
    if found.get(row.partition, 0) != offset:
        message = f"binding {row} comes too late"
        bound = _bound_at(remap, row.partition, time)
        detail = f"times before {remap.upper} are complete, with {bound}"
        hint = "rows may be added for times after the last that there is a row for"
        raise BindingsNotMonotone(message, detail=detail, hint=hint)


def _bound_at(remap: Remap[Any], part: int | str, time: Timestamp) -> SuppliedBinding:
    """Return the binding that a part has at a time, as the row that it was."""
    offset = offsets_of(remap.at(time)).get(part, 0)
    when = min(
        (b.time for b in remap.bindings if offsets_of(b.frontier).get(part, 0) == offset),
        default=time,
    )
    return SuppliedBinding(int(when), part, offset)


def _refuse(before: SuppliedBinding, row: SuppliedBinding) -> NoReturn:
    """Name the two rows that cannot both hold."""
    message = "bindings are not monotone"
    detail = f"{before} is followed by {row}"
    hint = "the offset of a partition must not decrease as the timestamp grows"
    if row.timestamp == before.timestamp:
        hint = "a partition has one offset at a timestamp"
    raise BindingsNotMonotone(message, detail=detail, hint=hint)
