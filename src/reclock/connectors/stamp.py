"""Times for the records that a reader read: vectorised follow over the bound ranges.

Definition. A record at offset o of part p gets the time of the range of p that holds o::

    time(p, o) = r.time   for the r in ranges with r.part = p and r.start ≤ o < r.stop

which is what ``remap.follow`` says of the whole remap, because ranges are its steps beyond
where reading resumed. Cost: O(n log r) for n records and r ranges.

Equal to ``follow``: tests/connectors/test_stamp.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reclock.remap.batch import NOT_BOUND, Steps, times_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reclock.remap.batch import Range


def stamp(
    ranges: Sequence[Range],
    parts: NDArray[np.int32] | NDArray[np.object_],
    offsets: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the time of each record; parts are numbers, or names as objects.

    >>> from reclock.remap.batch import Range
    >>> from reclock.time.timestamp import Timestamp
    >>> ranges = [Range(0, 5, 7, Timestamp(10)), Range(0, 7, 9, Timestamp(20))]
    >>> stamp(ranges, np.zeros(3, np.int32), np.array([5, 7, 8])).tolist()
    [10, 20, 20]
    """
    times = np.full(len(offsets), NOT_BOUND, np.int64)
    for part in np.unique(parts):
        own = sorted((r.stop, r.time) for r in ranges if r.part == part)
        steps = Steps(
            np.array([time for _, time in own], np.int64),
            np.array([stop for stop, _ in own], np.int64),
        )
        here = parts == part
        times[here] = times_of(steps, offsets[here])
    return times
