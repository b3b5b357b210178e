"""Groups of updates: those of one key at one time.

``Groups`` sorts the updates by time and key, what takes away before what adds. A row that occurs
n times is there n times. Keys are compared by their bytes, those that the topic will have: no
hash decides. Cost: one dictionary of the keys, and one sort if some key occurs twice at a time;
a snapshot whose keys differ is not sorted.

Tests: tests/sinks/encode/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.sinks.encode.encoder import Indices, Updates


@dataclass(frozen=True, slots=True)
class Groups:
    """Updates by time and key.

    ``rows`` are positions in the updates, repeated as often as the row occurs. Group g is
    ``rows[starts[g] : starts[g] + taken[g] + added[g]]``, of which the first ``taken[g]`` take
    away.
    """

    rows: Indices
    starts: NDArray[np.int64]
    taken: NDArray[np.int64]
    added: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)


def grouped(updates: Updates, keys: pa.Array | None) -> Groups:
    """Return the groups of updates with these keys; without keys each update is alone."""
    rows: Indices = np.arange(len(updates))
    diffs = updates.diffs
    if (np.abs(diffs) != 1).any():
        rows = np.repeat(rows, np.abs(diffs))
        diffs = np.repeat(diffs, np.abs(diffs))
    adds = (diffs > 0).astype(np.int64)
    times = updates.times[rows]
    if keys is None:
        order = np.lexsort((adds, times)) if (np.diff(adds) < 0).any() else slice(None)
        return Groups(rows[order], np.arange(len(rows)), 1 - adds[order], adds[order])
    codes = _codes(times, keys if len(rows) == len(keys) else keys.take(pa.array(rows)))
    if codes is None:
        return Groups(rows, np.arange(len(rows)), 1 - adds, adds)
    order = np.lexsort((adds, codes, times))
    rows, codes, times, adds = rows[order], codes[order], times[order], adds[order]
    starts = np.flatnonzero(_changes(times) | _changes(codes))
    sizes = np.diff(starts, append=len(rows))
    added = np.add.reduceat(adds, starts)
    return Groups(rows, starts, sizes - added, added)


def _codes(times: NDArray[np.int64], keys: pa.Array) -> NDArray[np.int64] | None:
    """Return a number for each key, the same for equal ones; None if no key is twice at a time."""
    dictionary = keys.dictionary_encode()
    distinct = len(dictionary.dictionary)
    if distinct == len(keys):
        return None
    codes: NDArray[np.int64] = dictionary.indices.to_numpy().astype(np.int64)
    if times[0] != times[-1]:
        _, place = np.unique(times, return_inverse=True)
        if len(pc.unique(pa.array(place * distinct + codes))) == len(keys):
            return None
    return codes


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it."""
    return np.concatenate([[True], values[1:] != values[:-1]]) if len(values) else values > 0
