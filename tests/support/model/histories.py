"""Histories of concurrent sessions, and a checker that says whether they are linearizable (P7).

A history is what clients saw: every operation with the moments at which it was called and
at which it returned. Two kinds of operation, on one set of numbers that only grows: ``add`` a
number nobody else adds, ``read`` all of them. Such a history is linearizable (there is one
order of all operations that explains every answer and in which whatever returned before
another was called comes first) exactly if

    (1)  reads form a chain: of any two sets read, one contains the other
    (2)  a read has every number whose add returned before it was called
    (3)  a read has no number whose add was called after it returned, nor one nobody adds
    (4)  a read that has a number has all whose add returned before that one's was called
    (5)  a read contains what any read saw that returned before it was called

(Necessary: each is a fact of any such order. Sufficient: give each set of the chain its place,
each add the place of the first set that has it; by (2) to (5) the order by place, adds before
reads, then by time of call contradicts no order in time.) An add whose outcome is unknown,
because the process died or the connection broke, never returned: it may show or not, but if
it shows it stays.

A register that one client sets to 1, 2, 3, … is such a set too: that of the numbers up to its
value. Many registers, or many tables, are one set, with numbers that tell them apart.

``check_times`` asks more than linearizability: that the *timestamps* that the database gave
to operations are such an order, every add at a time of its own.

Checked on histories with planted mistakes: tests/testing/test_histories.py.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False)
class Operation:
    """An ``add`` of one number, or a ``read`` of all; ``returned`` None is not known to have.

    ``numbers`` is the number added, or the set read; ``timestamp`` what the database says.
    """

    client: str
    kind: str
    called: int
    numbers: frozenset[int]
    returned: int | None = None
    timestamp: int | None = None

    def __str__(self) -> str:
        what = sorted(self.numbers) if self.kind == "add" else f"{len(self.numbers)} numbers"
        span = f"[{self.called}, {self.returned}]"
        return f"{self.client} {self.kind} {what} at {self.timestamp} in {span}"


@dataclass
class History:
    """Records operations of many threads."""

    operations: list[Operation] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @contextmanager
    def recording(self, client: str, kind: str, *numbers: int) -> Iterator[Operation]:
        """Record an operation; it returned if the block ends without an error."""
        operation = Operation(client, kind, monotonic_ns(), frozenset(numbers))
        if kind == "add":
            with self._lock:
                self.operations.append(operation)
        yield operation
        operation.returned = monotonic_ns()
        if kind == "read":
            with self._lock:
                self.operations.append(operation)

    @property
    def adds(self) -> list[Operation]:
        """The operations that add, by the moment they were called."""
        return sorted((o for o in self.operations if o.kind == "add"), key=lambda o: o.called)

    @property
    def reads(self) -> list[Operation]:
        """The operations that read and returned, by the moment they were called."""
        return sorted((o for o in self.operations if o.kind == "read"), key=lambda o: o.called)


def check_linearizable(history: History) -> list[str]:
    """Return why a history is not linearizable; nothing if it is."""
    return [*_chain(history), *_adds(history), *_reads_in_time(history)]


def check_times(history: History) -> list[str]:
    """Return where the database's own timestamps are no order that explains the history."""
    adds = [o for o in history.adds if o.timestamp is not None]
    reads = history.reads
    wrong = [
        f"two adds have one time: {one}; {other}"
        for one, other in pairwise(sorted(adds, key=lambda o: o.timestamp or 0))
        if one.timestamp == other.timestamp
    ]
    for read in reads:
        at = read.timestamp or 0
        seen = {o for o in adds if o.numbers <= read.numbers}
        for add in adds:
            if (add.timestamp or 0) <= at and add not in seen:
                wrong.append(f"{read} misses {add}")
            if (add.timestamp or 0) > at and add in seen:
                wrong.append(f"{read} has {add}, which is later")
    returned = sorted((o for o in [*adds, *reads] if o.returned), key=lambda o: o.returned or 0)
    ends = [o.returned or 0 for o in returned]
    latest: list[Operation] = []
    for operation in returned:
        ahead = latest and (latest[-1].timestamp or 0) >= (operation.timestamp or 0)
        latest.append(latest[-1] if ahead else operation)
    for operation in [*adds, *reads]:
        place = bisect_right(ends, operation.called)
        if place == 0:
            continue
        before, time = latest[place - 1], operation.timestamp or 0
        if (before.timestamp or 0) + (operation.kind == "add") > time:
            wrong.append(f"time goes back: {before}, and then {operation}")
    return wrong


def _chain(history: History) -> Iterator[str]:
    """(1)."""
    for one, other in pairwise(sorted(history.reads, key=lambda o: len(o.numbers))):
        if not one.numbers <= other.numbers:
            missing = sorted(one.numbers - other.numbers)
            yield f"reads contradict each other: {one} has {missing}, {other} has not"


def _adds(history: History) -> Iterator[str]:
    """(2), (3) and (4)."""
    adds = history.adds
    known = {number for add in adds for number in add.numbers}
    for read in history.reads:
        if read.numbers - known:
            yield f"{read} has {sorted(read.numbers - known)}, which were never added"
        last_seen = max((a.called for a in adds if a.numbers <= read.numbers), default=0)
        for add in adds:
            if add.numbers <= read.numbers:
                if read.returned is not None and add.called > read.returned:
                    yield f"{read} sees the future: {add}"
            elif add.returned is not None and add.returned < read.called:
                yield f"{read} misses what was done before it: {add}"
            elif add.returned is not None and add.returned < last_seen:
                yield f"{read} misses {add} and has one that began after it"


def _reads_in_time(history: History) -> Iterator[str]:
    """(5): with (1), comparing with the largest of those that returned before is enough."""
    returned = sorted(history.reads, key=lambda o: o.returned or 0)
    ends = [o.returned or 0 for o in returned]
    largest: list[Operation] = []
    for read in returned:
        more = largest and len(largest[-1].numbers) >= len(read.numbers)
        largest.append(largest[-1] if more else read)
    for read in returned:
        place = bisect_right(ends, read.called)
        if place and not largest[place - 1].numbers <= read.numbers:
            yield f"reads go back: {largest[place - 1]}, and then {read}"
