"""Positions whose times are known before they are read, from bindings that a user supplies.

Definition. The *plan* of a source is the bound times that come next, each with a frontier. A
position beyond what is durably bound gets the first time of the plan whose frontier has passed it,
as it will when that is bound (``remap.follow``). Tasks write these times with the records, so that
a tick takes of a run what is at its times, by reference.

Rows of the relation that are not bound yet may still change. What was read for another plan is
*out of date*, and read again: nothing of it is bound.

Tests: tests/ingest/test_timed.py; in a source: test_using.py.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from reclock.remap.batch import Range
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reclock.dataflow.piece import Piece
    from reclock.remap.trace import Binding
    from reclock.time.antichain import Antichain


@dataclass(frozen=True)
class Plan:
    """The times of positions, by part: ranges that follow one another."""

    ranges: Mapping[int | str, Sequence[Range]]

    @classmethod
    def of(cls, bound: Antichain[Any], steps: Iterable[Binding[Any]]) -> Plan:
        """Return the plan of what is bound next, beyond what is."""
        reached = offsets_of(bound)
        made: dict[int | str, list[Range]] = {}
        for step in steps:
            for part, stop in offsets_of(step.frontier).items():
                start = reached.get(part, 0)
                if stop > start:
                    made.setdefault(part, []).append(Range(part, start, stop, step.time))
                    reached[part] = stop
        return cls(made)

    def timed(self, span: Range) -> list[Range]:
        """Return a range in pieces of one time each, as far as it is planned."""
        own = self.ranges.get(span.part, ())
        found = []
        for planned in own[bisect_right(own, span.start, key=attrgetter("stop")) :]:
            start, stop = max(span.start, planned.start), min(span.stop, planned.stop)
            if start >= stop:
                break
            found.append(planned._replace(start=start, stop=stop))
        return found

    def has(self, piece: Piece, bound: Antichain[Any]) -> bool:
        """Return whether a piece has the times of this plan, beyond what is bound."""
        reached = offsets_of(bound)
        return all(
            self.timed(covered.range) == [covered.range]
            for covered in piece.covers
            if covered.range.stop > reached.get(covered.range.part, 0)
        )
