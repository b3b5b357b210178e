"""The memory of complete times, which tells a contradiction from a repetition.

Definition. Of the last complete times, from ``floor`` on, it is known which have updates, how many,
and which, by their hashes. A statement about such a time is a *repetition* if it says what is
known, and a *contradiction* otherwise: an update that was not among those that were published, or
another count. Of times before ``floor`` nothing is known any more, and nothing is looked at.

Remembered are ``TIMES`` times with ``UPDATES`` updates in all; of a time with more, only how many.
Late updates of times of which that is not enough are counted (``unchecked``), so are late counts of
times before ``floor`` (``uncounted``); both are reported.
What is remembered is durable with what waits, in TEMP, as statements of progress about complete
times: ``[t, t + 1)`` with the count of t, and the hashes as its message; the floor is the message
of one about time 0. So a restarted process tells the same (P2), and P5 holds.

Cost: a look at each late statement; a record for each complete time that has updates.

Tests: tests/ingest/test_closed_times.py.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from reclock.errors import ConflictingStatements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Hashes = NDArray[np.int64]

TIMES: Final = 1_000
UPDATES: Final = 50_000
"""How many complete times are remembered, and how many of their updates."""

_SOME: Final = np.empty(0, np.int64)
"""Hashes that are not known yet, or not remembered."""

_FLOOR: Final = "from "
_HASHES: Final = "hashes "


class Closed(NamedTuple):
    """A complete time: how many updates it has, and their hashes, sorted, if they are known."""

    time: int
    updates: int
    hashes: Hashes | None

    @property
    def record(self) -> tuple[int, str, str]:
        """As it is kept: time, counts and message of a statement."""
        known = b"" if self.hashes is None else self.hashes.tobytes()
        text = b64encode(known).decode()
        return self.time, json.dumps([[self.time, self.updates]]), f"{_HASHES}{text}"


class News(NamedTuple):
    """How what is remembered changes when times are closed: as records that come and go."""

    floor: int
    closed: tuple[Closed, ...]
    come: list[tuple[int, str, str]]
    gone: list[tuple[int, str, str]]


@dataclass
class ClosedTimes:
    """The complete times from ``floor`` on; ``stored`` is the floor that is durable, if one is."""

    floor: int
    stored: int | None = None
    unchecked: int = 0
    """How many late updates could be repetitions or contradictions: nobody knows any more."""
    uncounted: int = 0
    """The same of late counts."""
    _known: dict[int, Closed] = field(default_factory=dict)  # in the order of their times

    def restore(self, records: Iterable[tuple[int, str, str]]) -> None:
        """Take in what is durable, some at a time and in any order: counts and messages."""
        for time, counts, message in sorted(records):
            if message.startswith(_FLOOR):
                self.stored = max(self.stored or 0, int(message.removeprefix(_FLOOR)))
                self.floor = self.stored
                continue
            ((_, count),) = json.loads(counts)
            known = b64decode(message.removeprefix(_HASHES))
            hashes = np.frombuffer(known, np.int64) if known else None
            self._known[time] = Closed(time, count, hashes)
        self._known = dict(sorted(self._known.items()))

    # What is said of them.

    def is_checked(self, time: int) -> bool:
        """Return whether an update of a complete time can be one that it does not have."""
        found = self._known.get(time)
        return time >= self.floor and (found is None or found.hashes is not None)

    def check_update(self, time: int, known: int, data: object) -> None:
        """Refuse an update with this hash that a complete time does not have."""
        if not self.is_checked(time):
            self.unchecked += 1
            return
        found = self._known.get(time)
        if found is None:
            self._refuse(time, "it was complete without updates", data)
        else:
            assert found.hashes is not None
            at = int(np.searchsorted(found.hashes, known))
            if at == len(found.hashes) or found.hashes[at] != known:
                self._refuse(time, f"it was complete with {found.updates} others", data)

    @staticmethod
    def _refuse(time: int, why: str, data: object) -> None:
        message = f"an update is stated for time {time} after it was complete"
        raise ConflictingStatements(message, detail=f"{why}; the data is {data!r:.200}")

    def check_counts(self, lower: int, upper: int, counts: Mapping[int, int]) -> None:
        """Refuse other counts of the complete times in ``[lower, upper)``."""
        self.uncounted += sum(lower <= time < min(upper, self.floor) for time in counts)
        lower = max(lower, self.floor)
        for time in sorted({*counts, *self._known}):
            if lower <= time < upper:
                known = self._known[time].updates if time in self._known else 0
                if counts.get(time, 0) != known:
                    message = f"two counts are stated for time {time}"
                    detail = (
                        f"{known} updates, with which it was complete, and {counts.get(time, 0)}"
                    )
                    raise ConflictingStatements(message, detail=detail)

    # What is remembered.

    def news(self, times: NDArray[np.int64], hashes: Hashes) -> News:
        """Return what changes when these updates are published, at these times."""
        order = np.lexsort([hashes, times])
        times, hashes = times[order], hashes[order]
        starts = np.flatnonzero(np.diff(times, prepend=-1))
        made = []
        ends = np.append(starts[1:], len(times))[: len(starts)]
        for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
            some = hashes[begin:end] if end - begin <= UPDATES else None
            made.append(Closed(int(times[begin]), int(end - begin), some))
        return self.news_of(made)

    def remembering(self, counts: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        """Return of which times hashes are remembered when these are published, in order."""
        made = [Closed(time, n, _SOME if n <= UPDATES else None) for time, n in counts]
        return tuple(c.time for c in self.news_of(made).closed if c.hashes is not None)

    def counted(self, counts: Iterable[tuple[int, int]], hashes: Mapping[int, Hashes]) -> News:
        """Return what changes when so many updates are published; known are some hashes."""
        return self.news_of(
            [Closed(t, n, hashes.get(t, _SOME) if n <= UPDATES else None) for t, n in counts]
        )

    def news_of(self, made: Sequence[Closed]) -> News:
        """Return what changes when times are complete, in their order."""
        every, room = [*self._known.values(), *made], UPDATES
        kept = 0
        for closed in reversed(every[-TIMES:]):
            room -= 0 if closed.hashes is None else closed.updates
            if room < 0:
                break
            kept += 1
        cut = len(every) - kept
        floor = max(self.floor, every[cut - 1].time + 1) if cut else self.floor
        gone = [closed.record for closed in every[:cut] if closed.time in self._known]
        come = [closed.record for closed in made if closed.time >= floor]
        if floor != self.stored:
            come.append((0, "[]", f"{_FLOOR}{floor}"))
            gone += [] if self.stored is None else [(0, "[]", f"{_FLOOR}{self.stored}")]
        return News(floor, tuple(closed for closed in made if closed.time >= floor), come, gone)

    def settle(self, news: News) -> None:
        """Know what is durable."""
        self.floor = self.stored = news.floor
        self._known |= {closed.time: closed for closed in news.closed}
        for time in [time for time in self._known if time < news.floor]:
            del self._known[time]
