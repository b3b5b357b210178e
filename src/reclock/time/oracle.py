"""The rules of a timeline's oracle: which time a read or a write gets (P7).

Definition. An oracle is two timestamps, ``read_ts ≤ write_ts``. ``write`` hands out the
time of the next write (and of the next tick); ``apply_write(t)`` says that everything at
t is durable and visible; ``read`` gives the time of a strict serializable read.

Contract. For calls that happen one after the other, on one state kept through restarts::

    (1)  write    >  every earlier write, read, peek_write and applied time
    (2)  read     ≥  every earlier read and every applied time
    (3)  read     ≤  peek_write           nothing is read ahead of what was handed out
    (4)  write    =  now                  when now is beyond all of (1)
         write    =  write_ts + 1         otherwise: the clock stands or went back
    (5)  applied  ≤  max(write_ts, now + MAX_AHEAD_MS), else WriteTooFarAhead

(1) and (2) hold whatever the clock shows, because ``now`` only ever raises a maximum. A
clock that goes back an hour makes the oracle advance by single steps until the clock has
caught up; it never goes back and never stands still.

Why (5) has a maximum. Data that brings its own times (the wrong unit, a foreign clock)
must not push the timeline into the future, where every later read would have to follow:
so a time that the oracle did not hand out is bounded by the clock. But after the clock
went back by more than the bound, *every* time the oracle hands out is further ahead than
that, and refusing those would stop all writes until the clock caught up. A time
``t ≤ write_ts`` is behind what was already handed out, so applying it drags nothing. The
distance from the clock therefore grows only by the single steps of (4)::

    write_ts  ≤  max(first write_ts, greatest now seen + MAX_AHEAD_MS) + number of writes

(2) does not order a read after writes that were handed out and not yet applied. A reader at t waits
for the uppers of its inputs (``select``), and an upper passes t only when the writes at or before t
are done.

``now_ms`` is the caller's. In the ``EpochMilliseconds`` timeline it is the clock, rounded up to the
interval by the tick. In any other timeline there is no clock: now is the largest time that is not
beyond the upper of any object in it. A clock before the epoch counts as no clock at all.

All functions are pure and O(1); ``Oracle`` is the shape of a durable one. Invariants
under random clock walks and restarts: tests/time/test_oracle.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from reclock.errors import InvalidValue, WriteTooFarAhead
from reclock.time.timestamp import Timestamp

MAX_AHEAD_MS: Final = 10_000
"""How far beyond now a time may be applied that the oracle did not hand out."""

_START: Final = Timestamp(0)


@dataclass(frozen=True, slots=True)
class OracleState:
    """What an oracle has to remember.

    >>> state, t = write(OracleState(), now_ms=1_000)
    >>> t, read(state)
    (Timestamp(1000), Timestamp(0))
    >>> state = apply_write(state, t, now_ms=1_000)
    >>> read(state), write(state, now_ms=400)[1]
    (Timestamp(1000), Timestamp(1001))
    """

    read_ts: Timestamp = _START
    write_ts: Timestamp = _START

    def __post_init__(self) -> None:
        """Refuse a state that reads ahead of its writes."""
        if self.read_ts > self.write_ts:
            message = f"read_ts {self.read_ts} is beyond write_ts {self.write_ts}"
            raise InvalidValue(message)


def read(state: OracleState) -> Timestamp:
    """Return the time of a read that must see everything applied."""
    return state.read_ts


def peek_write(state: OracleState) -> Timestamp:
    """Return the greatest time handed out or applied: every later write is beyond it."""
    return state.write_ts


def write(state: OracleState, now_ms: int) -> tuple[OracleState, Timestamp]:
    """Hand out the time of a write; the state must be durable before the time is used."""
    time = Timestamp(max(state.write_ts + 1, now_ms))
    return OracleState(state.read_ts, time), time


def apply_write(state: OracleState, time: Timestamp, now_ms: int) -> OracleState:
    """Make ``time`` visible to reads; refuse one that would drag the timeline along.

    >>> apply_write(OracleState(), Timestamp(99_000), now_ms=1_000)
    Traceback (most recent call last):
    reclock.errors.WriteTooFarAhead: write timestamp 99000 is too far ahead
    detail: now is 1000 and the last write was at 0, so the latest acceptable time is 11000
    hint: check the unit of the data's timestamps (milliseconds) and the clocks involved
    """
    limit = max(int(state.write_ts), now_ms + MAX_AHEAD_MS)
    if time > limit:
        message = f"write timestamp {time} is too far ahead"
        detail = (
            f"now is {now_ms} and the last write was at {state.write_ts}, "
            f"so the latest acceptable time is {limit}"
        )
        hint = "check the unit of the data's timestamps (milliseconds) and the clocks involved"
        raise WriteTooFarAhead(message, detail=detail, hint=hint)
    return OracleState(state.read_ts.join(time), state.write_ts.join(time))


class Oracle(Protocol):
    """A timeline's oracle that remembers: the functions above over one kept state.

    Each method is atomic, and what it returns is durable before it returns. Every
    implementation passes tests/support/conformance/oracle.py.
    """

    def read(self) -> Timestamp:
        """Return the time of a read that must see everything applied."""
        ...

    def peek_write(self) -> Timestamp:
        """Return the greatest time handed out or applied."""
        ...

    def write(self, now_ms: int) -> Timestamp:
        """Hand out the time of a write."""
        ...

    def apply_write(self, time: Timestamp, now_ms: int) -> None:
        """Make ``time`` visible to reads."""
        ...
