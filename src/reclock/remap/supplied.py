"""Bring-your-own bindings: a remap made of rows that the user supplies.

A row ``(timestamp, partition, offset)`` says: from ``timestamp`` on, offsets of
``partition`` below ``offset`` belong to it or to an earlier time. Rows may come in any
order and repeat; a partition keeps its offset until a later row moves it. They are a
remap if and only if no partition ever goes back, which is checked row pair by row pair so
that the message can name the two that contradict each other. Nothing is accepted of a
set of rows in which one pair is wrong.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from reclock.errors import BindingsNotMonotone, InvalidValue
from reclock.remap.trace import Binding, Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable


class SuppliedBinding(NamedTuple):
    """One row of the user's relation."""

    timestamp: int
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"(timestamp {self.timestamp}, partition {self.partition}, offset {self.offset})"


def supplied_remap(
    rows: Iterable[SuppliedBinding], upper: Timestamp, *, closed: bool = False
) -> Remap[KafkaPosition]:
    """Return the remap that ``rows`` describe, complete for all times before ``upper``.

    ``closed`` says that the user's relation has ended: what is bound stays bound, the
    remap is sealed, and offsets that no row binds are never read.

    >>> rows = [SuppliedBinding(10, 0, 5), SuppliedBinding(20, 0, 3)]
    >>> supplied_remap(rows, Timestamp(30))
    Traceback (most recent call last):
    reclock.errors.BindingsNotMonotone: bindings are not monotone
    detail: (timestamp 10, partition 0, offset 5) is followed by \
(timestamp 20, partition 0, offset 3)
    hint: the offset of a partition must not decrease as the timestamp grows
    """
    ordered = sorted(set(rows))
    last: dict[int, SuppliedBinding] = {}
    for row in ordered:
        _check_row(row, upper)
        before = last.get(row.partition)
        if before is not None and (row.offset < before.offset or row.timestamp == before.timestamp):
            _refuse(before, row)
        last[row.partition] = row
    origin = Antichain.of(KafkaPosition.everything())
    bindings = [Binding(Timestamp(0), origin)]
    offsets: dict[int, int] = {}
    for time, group in groupby(ordered, key=attrgetter("timestamp")):
        offsets |= {row.partition: row.offset for row in group}
        frontier = KafkaPosition.frontier(offsets)
        if time == 0:
            bindings.clear()
        if not bindings or frontier != bindings[-1].frontier:
            bindings.append(Binding(Timestamp(time), frontier))
    if closed:
        return Remap(origin, Timestamp(0), Antichain(), tuple(bindings))
    if upper == 0:
        return Remap.unbound(origin)
    return Remap(origin, Timestamp(0), Antichain.of(upper), tuple(bindings))


def _check_row(row: SuppliedBinding, upper: Timestamp) -> None:
    """Refuse a row that is no binding at all, or that speaks of times not complete yet."""
    if min(row) < 0:
        message = f"invalid binding {row}"
        raise InvalidValue(message, detail="timestamp, partition and offset are not negative")
    if row.timestamp >= upper:
        message = f"binding {row} is not complete"
        raise InvalidValue(message, detail=f"the bindings are complete before {upper}")


def _refuse(before: SuppliedBinding, row: SuppliedBinding) -> NoReturn:
    """Name the two rows that cannot both hold."""
    message = "bindings are not monotone"
    detail = f"{before} is followed by {row}"
    hint = "the offset of a partition must not decrease as the timestamp grows"
    if row.timestamp == before.timestamp:
        hint = "a partition has one offset at a timestamp"
    raise BindingsNotMonotone(message, detail=detail, hint=hint)
