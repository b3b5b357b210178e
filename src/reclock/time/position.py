"""Positions in a source made of parts: partitions of a topic, files of a directory.

Definition. A position is (interval of part ids, offset). The part ids are a dense order
cut at places just before or just after an id; an interval lies between two cuts, and an
exact part is the interval from just before it to just after it. ::

    (I, o) ≤ (J, p)   ⇔   J ⊆ I  and  o ≤ p

so a wide interval comes before everything inside it. A record at offset o of part p has
position ``(exactly p, o)``; a frontier names every known part at its next offset and
covers the ids between, below and above them with gaps at offset 0. Parts that are not
born yet are therefore representable ("these have not started"), which answers the open
question of the reclocking document; a part that appears later splits a gap, which is
progress in the order, and one that disappears is a regression.

``KafkaPosition`` has integer parts, ``FilePosition`` has file names, ``TopicPosition`` partitions
of several topics, by name.

Properties, with sparse and unordered ids: tests/time/test_position.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

P = TypeVar("P", int, str)

BEFORE, AFTER = 0, 1


@dataclass(frozen=True, slots=True)
class Position(Generic[P]):
    """An interval of parts, all at ``offset``; ``None`` is the infinite end.

    >>> zero, one = KafkaPosition.exact(0, 50), KafkaPosition.exact(1, 7)
    >>> zero.less_equal(KafkaPosition.exact(0, 51)), zero.less_equal(one)
    (True, False)
    >>> KafkaPosition.everything().less_equal(one)
    True
    """

    low: tuple[P, int] | None
    high: tuple[P, int] | None
    offset: int

    def __post_init__(self) -> None:
        """Refuse empty intervals, offsets before the beginning and those past 64 bits."""
        if not 0 <= self.offset <= INT64_MAX:
            wrong = "must not be negative" if self.offset < 0 else "does not fit 64 bits"
            message = f"offset {wrong}, got {self.offset}"
            raise InvalidValue(message, detail=f"the position is {self}")
        if self.high is not None and self._nothing_between(self.low, self.high):
            message = "an interval of parts must not be empty"
            raise InvalidValue(message, detail=f"the position is {self}")

    @classmethod
    def exact(cls, part: P, offset: int) -> Self:
        """Return the position of one record, or the next offset of one part."""
        return cls((part, BEFORE), (part, AFTER), offset)

    @classmethod
    def everything(cls) -> Self:
        """Return the least position: all parts, not started."""
        return cls(None, None, 0)

    @classmethod
    def frontier(cls, offsets: Mapping[P, int]) -> Antichain[Self]:
        """Return the frontier that has each part at its next offset and no other part born.

        >>> KafkaPosition.frontier({2: 9, 0: 5})
        {[0] 5, (0, 2) 0, [2] 9, (2, ∞) 0}
        """
        elements: list[Self] = []
        low: tuple[P, int] | None = None
        for part in sorted(offsets):
            before = (part, BEFORE)
            if not cls._nothing_between(low, before):
                elements.append(cls(low, before, 0))
            elements.append(cls.exact(part, offsets[part]))
            low = (part, AFTER)
        elements.append(cls(low, None, 0))
        return Antichain.trusted(elements)

    @classmethod
    def _nothing_between(cls, low: tuple[P, int] | None, high: tuple[P, int]) -> bool:
        """Whether no part id can lie between the two cuts."""
        return low is not None and low >= high

    @property
    def part(self) -> P | None:
        """The part, if the interval is exactly one."""
        if self.low is not None and self.high == (self.low[0], AFTER) and self.low[1] == BEFORE:
            return self.low[0]
        return None

    @property
    def neighbourhood(self) -> object:
        """What comparable positions usually share: lets frontiers compare in linear time."""
        return self.low, self.high

    @classmethod
    def apart(cls, positions: Iterable[Position[P]]) -> bool:
        """Return whether no part is in two of ``positions``: then no two are comparable."""
        ordered = sorted(positions, key=lambda p: (p.low is not None, p.low))
        return all(
            a.high is not None
            and b.low is not None
            and (a.high <= b.low or cls._nothing_between(b.low, a.high))
            for a, b in pairwise(ordered)
        )

    def covers(self, part: P) -> bool:
        """Return whether ``part`` is in the interval."""
        return (self.low is None or self.low <= (part, BEFORE)) and (
            self.high is None or (part, AFTER) <= self.high
        )

    def less_equal(self, other: Self, /) -> bool:
        """Return whether ``other`` is inside this interval, at this offset or later."""
        return (
            self.offset <= other.offset
            and (self.low is None or (other.low is not None and self.low <= other.low))
            and (self.high is None or (other.high is not None and other.high <= self.high))
        )

    def join(self, other: Self, /) -> Self | None:
        """Return the intersection at the later offset; ``None`` if no part is in both."""
        low = other.low if self.low is None else self.low
        if self.low is not None and other.low is not None:
            low = max(self.low, other.low)
        high = other.high if self.high is None else self.high
        if self.high is not None and other.high is not None:
            high = min(self.high, other.high)
        if high is not None and self._nothing_between(low, high):
            return None
        return type(self)(low, high, max(self.offset, other.offset))

    def meet(self, other: Self, /) -> Self:
        """Return the smallest interval around both, at the earlier offset."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return type(self)(low, high, min(self.offset, other.offset))

    def __lt__(self, other: Self) -> bool:
        """Sort by place, wider first, then offset; a linear extension of the order."""
        if self.low != other.low:
            return self.low is None or (other.low is not None and self.low < other.low)
        if self.high != other.high:
            return self.high is None or (other.high is not None and self.high > other.high)
        return self.offset < other.offset

    def __str__(self) -> str:
        if self.part is not None:
            return f"[{self.part}] {self.offset}"
        low = "(-∞" if self.low is None else f"{'[('[self.low[1]]}{self.low[0]}"
        high = "∞)" if self.high is None else f"{self.high[0]}{')]'[self.high[1]]}"
        return f"{low}, {high} {self.offset}"


@dataclass(frozen=True, slots=True)
class KafkaPosition(Position[int]):
    """(partition ids, offset) of a topic: partitions are integers, so gaps can be empty."""

    def __post_init__(self) -> None:
        """Refuse partitions that cannot exist."""
        Position.__post_init__(self)
        for cut in (self.low, self.high):
            if cut is not None and cut[0] < 0:
                message = f"partition must not be negative, got {cut[0]}"
                raise InvalidValue(message)

    @classmethod
    def _nothing_between(cls, low: tuple[int, int] | None, high: tuple[int, int]) -> bool:
        """Whether no integer from 0 on lies between: after p and before p + 1, below 0."""
        first = 0 if low is None else max(0, low[0] + low[1])
        return first >= high[0] + high[1]


@dataclass(frozen=True, slots=True)
class FilePosition(Position[str]):
    """(file names, byte after the last whole line) of a file or directory source."""


@dataclass(frozen=True, slots=True)
class TopicPosition(Position[str]):
    """(partitions of topics, offset) of a source that reads several topics: ``topic/partition``."""


PositionT = TypeVar("PositionT", KafkaPosition, FilePosition, TopicPosition)


def offsets_of(frontier: Antichain[PositionT]) -> dict[int | str, int]:
    """Return the next offset of each part that the frontier names exactly.

    >>> offsets_of(KafkaPosition.frontier({2: 9, 0: 5}))
    {0: 5, 2: 9}
    """
    return {e.part: e.offset for e in frontier if e.part is not None}
