"""Reclocking whole batches of offsets: numpy arrays in, times out.

The same function as ``follow.time_of``, for the positions of one part: R restricted to a
part p is a list of (time, next offset) steps, so an offset o lands at the time of the
first step whose offset is greater than o. ::

    times(p, o) = time[ searchsorted(offset, o, side="right") ]

Gaps cover p at offset 0 until it is born, so no step is greater than any offset before
that, and a part bound in the very first binding lands at ``since``. Offsets that are not
bound yet get ``NOT_BOUND``. Where R is closed a part is bound to its end, ``END``.

``ranges`` is the other direction, what a tick reads: the exact offsets that became bound
in an interval of times, per part, each with its time.

Cost: O(m log n) for m offsets and n bindings; the index of a part is built once per
version of the remap, O(n). Equal to ``follow`` on every offset: tests/remap/test_batch.py;
speed: benchmarks/reclock_batch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reclock.errors import InvalidValue
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.remap.trace import Remap
    from reclock.time.antichain import Antichain
    from reclock.time.position import FilePosition, KafkaPosition

NOT_BOUND = -1
"""Stands for "ahead of the remap" in arrays of times, which are never negative."""


END = int(np.iinfo(np.int64).max)
"""The stop of a range that reaches to the end of a complete part."""


class Steps(NamedTuple):
    """R restricted to one part: at ``times[i]`` offsets below ``offsets[i]`` are bound."""

    times: NDArray[np.int64]
    offsets: NDArray[np.int64]


class Range(NamedTuple):
    """Offsets ``[start, stop)`` of ``part`` belong to ``time``."""

    part: int | str
    start: int
    stop: int
    time: Timestamp


def steps_of(remap: Remap[KafkaPosition] | Remap[FilePosition], part: int | str) -> Steps:
    """Return the steps of R at ``part``, each strictly beyond the one before."""
    times: list[int] = []
    offsets: list[int] = []
    bound = 0
    for binding in remap.bindings:
        offset = offset_at(binding.frontier, part)
        if offset is None or offset > bound:
            times.append(binding.time)
            offsets.append(END if offset is None else offset)
            bound = offsets[-1]
    return Steps(np.array(times, np.int64), np.array(offsets, np.int64))


def offset_at(
    frontier: Antichain[KafkaPosition] | Antichain[FilePosition], part: int | str
) -> int | None:
    """Return how far ``frontier`` has ``part``; ``None`` where it is complete."""
    found: list[int] = [e.offset for e in frontier.elements if e.covers(part)]  # type: ignore[arg-type]
    return min(found) if found else None


def times_of(steps: Steps, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time of each offset, ``NOT_BOUND`` for those ahead of the remap.

    >>> steps = Steps(np.array([10, 20]), np.array([3, 5]))
    >>> times_of(steps, np.arange(6)).tolist()
    [10, 10, 10, 20, 20, -1]
    """
    if offsets.size and int(offsets.min()) < 0:
        message = f"offset must not be negative, got {int(offsets.min())}"
        raise InvalidValue(message)
    padded = np.append(steps.times, NOT_BOUND)
    times: NDArray[np.int64] = padded[np.searchsorted(steps.offsets, offsets, side="right")]
    return times


def ranges(
    remap: Remap[KafkaPosition] | Remap[FilePosition], part: int | str, start: int
) -> list[Range]:
    """Return the bound offsets of ``part`` from ``start`` on, one range per time.

    ``start`` is where a reader resumes (``resume``); a range that begins before it is cut,
    one that ends before it is left out.
    """
    found: list[Range] = []
    steps = steps_of(remap, part)
    for time, stop in zip(steps.times.tolist(), steps.offsets.tolist(), strict=True):
        if stop > start:
            found.append(Range(part, start, stop, Timestamp(time)))
            start = stop
    return found
