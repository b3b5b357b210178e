"""What every oracle must do, as one function: see the contract in ``reclock.time.oracle``.

``check_oracle(reopen)`` drives an oracle through a fixed scenario of writes, reads, clock
jumps and restarts, and asserts the contract's inequalities after every call. ``reopen``
returns the oracle of a fresh timeline at the first call, and afterwards what a restarted
process would find.

``MemoryOracle`` keeps its state in memory: the reference, and what tests use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from reclock.errors import WriteTooFarAhead
from reclock.time import oracle as rules
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR_MS = 3_600_000


class MemoryOracle:
    """``Oracle`` over a state in memory; atomic under a lock."""

    def __init__(self, state: rules.OracleState | None = None) -> None:
        self._lock = Lock()
        self.state = state or rules.OracleState()

    def read(self) -> Timestamp:
        """Return the time of a read."""
        return rules.read(self.state)

    def peek_write(self) -> Timestamp:
        """Return the greatest time handed out or applied."""
        return rules.peek_write(self.state)

    def write(self, now_ms: int) -> Timestamp:
        """Hand out the time of a write."""
        with self._lock:
            self.state, time = rules.write(self.state, now_ms)
            return time

    def apply_write(self, time: Timestamp, now_ms: int) -> None:
        """Make ``time`` visible to reads."""
        with self._lock:
            self.state = rules.apply_write(self.state, time, now_ms)


@dataclass
class _Observer:
    """Calls an oracle and asserts the contract against all calls before."""

    oracle: rules.Oracle
    seen: list[Timestamp] = field(default_factory=lambda: [Timestamp(0)])
    reads: list[Timestamp] = field(default_factory=lambda: [Timestamp(0)])
    applied: list[Timestamp] = field(default_factory=lambda: [Timestamp(0)])

    def write(self, now_ms: int) -> Timestamp:
        time = self.oracle.write(now_ms)
        assert time > max(self.seen), f"write {time} is not beyond {max(self.seen)}"
        assert time == max(now_ms, max(self.seen) + 1), f"write {time} skipped ahead of {now_ms}"
        self.seen.append(time)
        return time

    def apply(self, time: Timestamp, now_ms: int) -> None:
        self.oracle.apply_write(time, now_ms)
        self.seen.append(time)
        self.applied.append(time)
        self.observe()

    def observe(self) -> None:
        time = self.oracle.read()
        assert time == max(self.applied), f"read {time} is not the last applied time"
        assert time >= max(self.reads), f"read {time} went back from {max(self.reads)}"
        assert self.oracle.peek_write() == max(self.seen), "peek_write is not the greatest time"
        self.reads.append(time)


def check_oracle(reopen: Callable[[], rules.Oracle]) -> None:
    """Assert the contract on the oracle that ``reopen`` gives, through clocks and restarts."""
    observer = _Observer(reopen())
    observer.observe()
    for now in (1_000, 1_000, 999, 0, 5_000, 5_000 - HOUR_MS, HOUR_MS, 6_000, 2 * HOUR_MS):
        first = observer.write(now)
        second = observer.write(now)
        observer.observe()
        observer.oracle = reopen()
        observer.observe()
        observer.apply(second, now)
        observer.apply(first, now)
        observer.oracle = reopen()
        observer.observe()
    _check_bound(observer, reopen, now=10 * HOUR_MS)
    _check_bound(observer, reopen, now=9 * HOUR_MS)


def _check_bound(observer: _Observer, reopen: Callable[[], rules.Oracle], now: int) -> None:
    """Assert that foreign times are bounded by the clock, and the oracle's own are not."""
    observer.apply(observer.write(now), now)
    limit = max(now + rules.MAX_AHEAD_MS, observer.oracle.peek_write())
    try:
        observer.oracle.apply_write(Timestamp(limit + 1), now)
    except WriteTooFarAhead:
        observer.oracle = reopen()
        observer.observe()
    else:
        message = f"a write at {limit + 1} was applied while now is {now}"
        raise AssertionError(message)
    observer.apply(Timestamp(limit), now)
    observer.apply(observer.write(now - HOUR_MS), now - HOUR_MS)
