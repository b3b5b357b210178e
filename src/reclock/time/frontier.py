"""Frontiers of one timeline, which have at most one element and so read like times.

Definition. ``Frontier`` is an antichain of timestamps: ``{t}``, or ``{}`` for closed. An
object is readable in ``[since, upper)``; with ``since = {s}`` and ``upper = {u}`` its
times are::

    0 … s-1   forgotten: compacted into s, no longer told apart
    s … u-1   definite: complete, and still readable one by one
    u …       not complete yet

``upper = {}`` means complete for ever; ``since = {}`` means nothing is readable any more
(the object is dropped). Every rule of this layer that speaks of several objects speaks of
their ``Bounds``.

Checked in tests/time/test_frontier.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from reclock.errors import Unreadable
from reclock.time.antichain import Antichain, join_all, meet_all
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Frontier: TypeAlias = Antichain[Timestamp]

CLOSED: Final[Frontier] = Antichain.closed()


def at(time: int) -> Frontier:
    """Return the frontier ``{time}``.

    >>> at(5), at(5).less_equal(Timestamp(4))
    ({5}, False)
    """
    return Antichain.of(Timestamp(time))


BEGINNING: Final[Frontier] = at(0)


def last_complete(upper: Frontier) -> Timestamp | None:
    """Return the largest t that ``upper`` is not at or before, or ``None`` for none.

    >>> last_complete(at(5)), last_complete(at(0)), last_complete(CLOSED)
    (Timestamp(4), None, Timestamp(9223372036854775807))
    """
    if upper.is_closed:
        return Timestamp(INT64_MAX)
    first_open = upper.element()
    return first_open.back() if first_open > 0 else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """An object, by the name that people know, and the times it can be read at."""

    object: str
    since: Frontier
    upper: Frontier

    def complete_at(self, time: Timestamp) -> bool:
        """Return whether nothing at ``time`` may change any more."""
        return not self.upper.less_equal(time)

    def kept_at(self, time: Timestamp) -> bool:
        """Return whether ``time`` has not been compacted away."""
        return self.since.less_equal(time)


def common_upper(inputs: Iterable[Bounds]) -> Frontier:
    """Return the meet of the uppers: before it all of ``inputs`` are complete."""
    return meet_all(i.upper for i in inputs)


def readable_since(inputs: Sequence[Bounds]) -> Timestamp:
    """Return the time from which on all of ``inputs`` are readable: the join of the sinces."""
    since = join_all((i.since for i in inputs), BEGINNING)
    if since.is_closed:
        gone = ", ".join(i.object for i in inputs if i.since.is_closed)
        message = f"{gone} cannot be read any more"
        raise Unreadable(message, detail=describe_sinces(inputs))
    return since.element()


def describe_sinces(inputs: Iterable[Bounds]) -> str:
    """Return every object's since, for the detail of an error."""
    return ", ".join(f"{i.object} has since {i.since}" for i in inputs)
