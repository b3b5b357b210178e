"""Reclocking whole batches of offsets: numpy arrays in, times out.

The same function as ``follow.time_of``, for the positions of one part: R restricted to a
part p is a list of (time, next offset) steps, so an offset o lands at the time of the
first step whose offset is greater than o. ::

    times(p, o) = time[ searchsorted(offset, o, side="right") ]

Gaps cover p at offset 0 until it is born, so no step is greater than any offset before
that, and a part bound in the very first binding lands at ``since``. Offsets that are not
bound yet get ``NOT_BOUND``. Where R is closed a part is bound to its end, ``END``.

``ranges`` is the other direction, what a tick reads: the exact offsets of each part that
are bound beyond a frontier, each range with its time.

Cost: O(m log n) for m offsets and n bindings; the index of a part is built once per
version of the remap, O(n). ``ranges`` looks at the bindings beyond its start only, and at
each part of each once. Equal to ``follow`` on every offset: tests/remap/test_batch.py;
speed: benchmarks/reclock_batch.py.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reclock.errors import InvalidValue
from reclock.time.position import PositionT, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from reclock.remap.trace import Remap
    from reclock.time.antichain import Antichain
    from reclock.time.position import FilePosition, KafkaPosition
    from reclock.time.timestamp import Timestamp

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
    return next((e.offset for e in frontier.elements if e.covers(part)), None)  # type: ignore[arg-type]


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
    remap: Remap[PositionT], parts: Iterable[int | str], start: Antichain[PositionT]
) -> list[Range]:
    """Return the offsets of ``parts`` that are bound beyond ``start``, part by part.

    ``start`` is where a reader resumes (``resume``); a range that begins before it is cut,
    one that ends before it is left out.

    >>> from reclock.remap.trace import Remap
    >>> from reclock.time.position import KafkaPosition as K
    >>> from reclock.time.timestamp import Timestamp
    >>> remap = Remap.unbound(K.frontier({})).bound(Timestamp(5), K.frontier({0: 3, 1: 2}))
    >>> ranges(remap, [0, 1], K.frontier({0: 1}))
    [Range(part=0, start=1, stop=3, time=Timestamp(5)), \
Range(part=1, start=0, stop=2, time=Timestamp(5))]
    """
    beyond = bisect_left(remap.bindings, True, key=lambda b: not b.frontier.precedes(start))
    begun = offsets_of(start)
    bound = {part: begun.get(part, 0) for part in parts}
    found: dict[int | str, list[Range]] = {part: [] for part in bound}
    for binding in remap.bindings[beyond:]:
        complete = dict.fromkeys(bound, END) if binding.frontier.is_closed else None
        for part, stop in (complete or offsets_of(binding.frontier)).items():
            if part in bound and stop > bound[part]:
                found[part].append(Range(part, bound[part], stop, binding.time))
                bound[part] = stop
    return [each for part in found.values() for each in part]
