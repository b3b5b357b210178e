"""Totally ordered times: the target of every remap, and the gauges of simple sources.

``Timestamp`` is the IntoTime of reclock: int64, milliseconds since the epoch in the
``EpochMilliseconds`` timeline, a count or a user's number in others. It *is* an ``int``
(so it goes into numpy, Arrow and JSON as it is) whose construction checks the range, and
whose ``step`` refuses to overflow: a time that wraps round would be a wrong answer.

``Lsn`` (PostgreSQL's log sequence number) and ``Sequence`` (counters, lines) are source
gauges with the same total order. Times of different classes are never comparable.
"""

from __future__ import annotations

import re
from typing import ClassVar, Self

from reclock.errors import InvalidValue, TimestampOverflow

INT64_MAX = 2**63 - 1

_LSN = re.compile(r"(?P<high>[0-9A-Fa-f]{1,8})/(?P<low>[0-9A-Fa-f]{1,8})")


class TotalTime(int):
    """An integer time: ``less_equal`` is ``<=``, joins are maxima, meets are minima."""

    __slots__ = ()

    noun: ClassVar[str] = "time"
    greatest: ClassVar[int] = INT64_MAX

    def __new__(cls, value: int) -> Self:
        """Check that ``value`` is in ``[0, greatest]``."""
        if not 0 <= value <= cls.greatest:
            message = f"{cls.noun} {value} is out of range"
            detail = f"a {cls.noun} is between 0 and {cls.greatest}"
            error = TimestampOverflow if value > cls.greatest else InvalidValue
            raise error(message, detail=detail)
        return super().__new__(cls, value)

    @classmethod
    def minimum(cls) -> Self:
        """Return the least time, 0."""
        return cls(0)

    def less_equal(self, other: Self, /) -> bool:
        """Return whether ``self`` is at or before ``other``."""
        return self <= other

    def join(self, other: Self, /) -> Self:
        """Return the later of the two."""
        return other if self <= other else self

    def meet(self, other: Self, /) -> Self:
        """Return the earlier of the two."""
        return self if self <= other else other

    def step(self, by: int = 1) -> Self:
        """Return the time ``by`` later.

        >>> Timestamp(5).step()
        Timestamp(6)
        >>> Timestamp(INT64_MAX).step()
        Traceback (most recent call last):
        reclock.errors.TimestampOverflow: timestamp 9223372036854775808 is out of range
        detail: a timestamp is between 0 and 9223372036854775807
        """
        return type(self)(self + by)

    def back(self, by: int = 1) -> Self:
        """Return the time ``by`` earlier, but never before the minimum.

        >>> Timestamp(5).back(), Timestamp(5).back(9)
        (Timestamp(4), Timestamp(0))
        """
        return type(self)(max(0, self - by))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    def __str__(self) -> str:
        return str(int(self))


class Timestamp(TotalTime):
    """A time of a timeline: what collections, views and reads are stamped with."""

    __slots__ = ()
    noun = "timestamp"


class Sequence(TotalTime):
    """A position in a source that counts: lines read, rows generated."""

    __slots__ = ()
    noun = "sequence number"


class Lsn(TotalTime):
    """A PostgreSQL log sequence number (64 bits, unsigned).

    >>> Lsn.parse("16/B374D848")
    Lsn(97500059720)
    >>> str(Lsn(97500059720))
    '16/B374D848'
    """

    __slots__ = ()
    noun = "log sequence number"
    greatest = 2**64 - 1

    @property
    def part(self) -> int:
        """The part of its source that it is in: a log is one part, 0."""
        return 0

    @property
    def offset(self) -> int:
        """Its place in that part."""
        return int(self)

    def covers(self, part: int | str) -> bool:
        """Return whether it says something of ``part``: a log is one part."""
        return part == self.part

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read PostgreSQL's form, two hexadecimal halves."""
        match = _LSN.fullmatch(text)
        if match is not None:
            return cls((int(match["high"], 16) << 32) | int(match["low"], 16))
        message = f'invalid log sequence number "{text}"'
        raise InvalidValue(message, hint="write it as PostgreSQL does, such as '16/B374D848'")

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"


def round_up(ms: int, interval: int) -> Timestamp:
    """Return the first multiple of ``interval`` at or after ``ms``.

    >>> round_up(1_001, 1_000), round_up(2_000, 1_000)
    (Timestamp(2000), Timestamp(2000))
    """
    if interval <= 0:
        message = f"timestamp interval must be positive, not {interval} ms"
        raise InvalidValue(message)
    return Timestamp(-(-ms // interval) * interval)
