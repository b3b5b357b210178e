"""Find the updates of many keys in a run, without reading the rest of it.

Given n keys with their hashes, and a run of S rows: which batches may hold them is read
off the run's table; in each of those, ``hashes`` finds the rows of equal hash; those rows
are taken, and kept if their key equals the one asked for. ::

    cost  O(n log S + matches), in numpy and Arrow; never a scan

Colliding hashes cost their extra rows and change nothing. NULL finds NULL here, as in
GROUP BY; a join, where NULL matches nothing, does not ask for NULL keys.

Tests: tests/arrangement/test_probe.py; benchmarks/arrangement.py shows the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import kh_of
from reclock.arrangement.row import rows_equal
from reclock.arrangement.stream import concat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.arrangement.hashes import Hashes
    from reclock.arrangement.layout import Int64s, Layout
    from reclock.arrangement.run import Run


SMALL_BATCH: Final = 4_096
"""Copying a batch of so few rows costs less than another ``take``."""


class Matches(NamedTuple):
    """Pairs of a key asked for, by its index, and an update with that key."""

    probe: Int64s
    updates: pa.RecordBatch


class _Found(NamedTuple):
    """Rows of a batch with the hash of a key, and which key that is."""

    probed: Int64s
    batch: pa.RecordBatch
    rows: Int64s


def probe(layout: Layout, runs: Iterable[Run], keys: pa.RecordBatch) -> Matches:
    """Return all updates of ``keys`` (``kh, <key…>``, conformed) in ``runs``.

    A key that is asked for twice is answered twice. Updates are as stored: those of
    different runs may cancel.
    """
    order = np.argsort(kh_of(keys), kind="stable")
    wanted = kh_of(keys)[order]
    found: list[_Found] = []
    for run in runs:
        starts = np.searchsorted(wanted, run.first, "left")
        ends = np.searchsorted(wanted, run.last, "right")
        for index in np.flatnonzero(starts < ends).tolist():
            some = slice(starts[index], ends[index])
            rows, nth = _equal_hashes(run.hashes(index), wanted[some])
            if rows.size:
                found.append(_Found(order[some][nth], run.batch(index), rows))
    if not found:
        return Matches(np.empty(0, np.int64), layout.empty())
    found = _together(found)
    updates = concat([batch.take(pa.array(rows)) for _, batch, rows in found])
    matches = Matches(np.concatenate([probed for probed, _, _ in found]), updates)
    if not layout.key:
        return matches
    asked = [column.take(pa.array(matches.probe)) for column in layout.keys(keys)]
    equal = rows_equal(layout.keys(matches.updates), asked)
    if equal.all():
        return matches
    return Matches(matches.probe[equal], matches.updates.filter(pa.array(equal)))


def _together(found: list[_Found]) -> list[_Found]:
    """Return the same with the small batches as one: rows are taken once for all of them."""
    small = [part for part in found if part.batch.num_rows <= SMALL_BATCH]
    if len(small) <= 1:
        return found
    sizes = [part.batch.num_rows for part in small]
    shifts = np.cumsum([0, *sizes[:-1]])
    whole = _Found(
        np.concatenate([part.probed for part in small]),
        concat([part.batch for part in small]),
        np.concatenate([part.rows + shift for part, shift in zip(small, shifts, strict=True)]),
    )
    return [*(part for part in found if part.batch.num_rows > SMALL_BATCH), whole]


def _equal_hashes(hashes: Hashes, wanted: Int64s) -> tuple[Int64s, Int64s]:
    """Return all pairs (row, index into ``wanted``) of equal hashes; both are sorted."""
    low, count = hashes.find(wanted)
    hit = np.flatnonzero(count)
    low, count = low[hit], count[hit]
    if hit.size == count.sum():
        return low, hit
    before = np.cumsum(count) - count
    rows = np.arange(count.sum()) + np.repeat(low - before, count)
    return rows, np.repeat(hit, count)
