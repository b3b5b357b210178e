"""Progress of a source's own gauge, expressed in the target timeline, and back.

What the remap says is useful by itself: which offsets were visible at a time, and at
which time an offset became visible, now and at every past time still kept. These are
the rows of the system relation ``reclock.bindings`` and the two directions of
``reclock.translate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reclock.errors import InvalidValue, Unreadable
from reclock.remap.follow import time_of
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.remap.trace import Remap
    from reclock.time.position import KafkaPosition
    from reclock.time.timestamp import Timestamp


class BindingRow(NamedTuple):
    """At ``timestamp``, offsets of ``partition`` below ``offset`` were bound."""

    timestamp: Timestamp
    partition: int | str
    offset: int


def binding_rows(remap: Remap[KafkaPosition]) -> Iterator[BindingRow]:
    """Yield one row per kept binding time and known partition, in order."""
    for binding in remap.bindings:
        for part, offset in offsets_of(binding.frontier).items():
            yield BindingRow(binding.time, part, offset)


def offsets_at(remap: Remap[KafkaPosition], time: Timestamp) -> dict[int | str, int]:
    """Return the next offset of each partition that was known at ``time``."""
    return offsets_of(remap.at(time))


def timestamp_of(remap: Remap[KafkaPosition], position: KafkaPosition) -> Timestamp:
    """Return the time at which the record at ``position`` became visible.

    A record bound at or before ``since`` is reported at ``since``: its own time has been
    compacted away.
    """
    complete = remap.latest.is_closed
    if position.part is None or not (complete or position.part in offsets_of(remap.latest)):
        message = f"unknown partition in position {position}"
        raise InvalidValue(message, detail=f"bound positions are {remap.latest}")
    time = time_of(remap, position)
    if time is None:
        message = f"position {position} is not bound yet"
        detail = f"positions up to {remap.latest} are bound, complete before {remap.upper}"
        raise Unreadable(message, detail=detail)
    return time
