"""The two statements of CDCv2, as values that check themselves.

Invariants. An update's diff is not zero and fits 64 bits. A progress statement covers at
least one time; its counts name times it covers, each once, in order; a count of zero says
nothing and is left out.

Tests: tests/change/test_cdcv2_codec.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from reclock.errors import MalformedMessage

if TYPE_CHECKING:
    from reclock.change.update import Update
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

INT64: Final = range(-(2**63), 2**63)


def refuse(detail: str) -> NoReturn:
    """Raise the error for a message that is not CDCv2, saying why."""
    message = "malformed CDCv2 message"
    raise MalformedMessage(message, detail=detail)


@dataclass(frozen=True, slots=True)
class Updates:
    """These updates are in the collection."""

    array: tuple[Update[Any, Timestamp], ...]

    def __post_init__(self) -> None:
        """Refuse diffs that no consolidated collection has."""
        for number, update in enumerate(self.array):
            if update.diff == 0 or update.diff not in INT64:
                detail = f"array[{number}].diff is {update.diff}, not a non-zero 64-bit integer"
                refuse(detail)


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of updates of every time in ``[lower, upper)``.

    >>> from reclock.time.antichain import Antichain
    >>> from reclock.time.timestamp import Timestamp
    >>> Progress(Antichain.of(Timestamp(5)), Antichain.of(Timestamp(3)))
    Traceback (most recent call last):
    reclock.errors.MalformedMessage: malformed CDCv2 message
    detail: progress.lower [5] is not before progress.upper [3]
    """

    lower: Antichain[Timestamp]
    upper: Antichain[Timestamp]
    counts: tuple[tuple[Timestamp, int], ...] = ()

    def __post_init__(self) -> None:
        """Refuse statements about no time, or counts of times outside the interval."""
        if not self.lower.strictly_precedes(self.upper):
            detail = (
                f"progress.lower {[*map(int, self.lower)]} "
                f"is not before progress.upper {[*map(int, self.upper)]}"
            )
            refuse(detail)
        seen: set[Timestamp] = set()
        for number, (time, count) in enumerate(self.counts):
            where = f"progress.counts[{number}]"
            if count < 0:
                refuse(f"{where}.count is {count}, and must not be negative")
            if not self.lower.less_equal(time) or self.upper.less_equal(time):
                refuse(f"{where}.time {time} is not in [{self.lower}, {self.upper})")
            if time in seen:
                refuse(f"{where}.time {time} is counted twice")
            seen.add(time)
        counts = tuple(sorted((time, count) for time, count in self.counts if count))
        object.__setattr__(self, "counts", counts)


Message = Updates | Progress
