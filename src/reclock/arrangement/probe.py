"""Find the updates of many keys in a run, without reading the rest of it.

Given n keys with their hashes, and a run of S rows: which batches may hold them is read
off the run's table; in each of those, ``hashes`` finds the rows of equal hash; those rows
are taken, and kept if their key equals the one asked for. ::

    cost  O(n log S + matches), in numpy and Arrow; never a scan

Who reads some columns only says which (``wanted``): the others, texts that nobody looks at for the
most part, are not gathered, and are NULL.

Colliding hashes cost their extra rows and change nothing. NULL finds NULL here, as in
GROUP BY; a join, where NULL matches nothing, does not ask for NULL keys.

Tests: tests/arrangement/test_probe.py; benchmarks/arrangement.py shows the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.consolidate import by_hash
from reclock.arrangement.hashes import Hashes
from reclock.arrangement.layout import kh_of
from reclock.arrangement.row import rows_equal
from reclock.arrangement.stream import concat

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from reclock.arrangement.family import Sorted
    from reclock.arrangement.layout import Int64s, Layout


SMALL_RUN: Final = 1_024
"""Runs of so few updates are put together first: searching each costs more than that."""


class Matches(NamedTuple):
    """Pairs of a key asked for, by its index, and an update with that key."""

    probe: Int64s
    updates: pa.RecordBatch


def probe(
    layout: Layout,
    runs: Iterable[Sorted],
    keys: pa.RecordBatch,
    wanted: Collection[int] | None = None,
) -> Matches:
    """Return all updates of ``keys`` (``kh, <key…>``, conformed) in ``runs``.

    A key that is asked for twice is answered twice. Updates are as stored: those of
    different runs may cancel. Of the value columns only the ``wanted`` ones, numbered as those of
    the layout's schema, are sure to have values.
    """
    order = by_hash(kh_of(keys))
    hashes = kh_of(keys)[order]
    chosen = None if wanted is None else with_keys(layout, wanted)
    found: list[Matches] = []
    small: list[pa.RecordBatch] = []
    for run in runs:
        if run.rows <= SMALL_RUN:
            small += run
        else:
            found += _in_run(run, hashes, chosen)
    if small:
        found.append(_in_batches(small, hashes, chosen))
    found = [part for part in found if len(part.probe)]
    if not found:
        return Matches(np.empty(0, np.int64), layout.empty())
    probed = order[np.concatenate([part.probe for part in found])]
    matches = Matches(probed, concat([part.updates for part in found]))
    if not layout.key:
        return matches
    asked = [column.take(pa.array(matches.probe)) for column in layout.keys(keys)]
    equal = rows_equal(layout.keys(matches.updates), asked)
    if equal.all():
        return matches
    return Matches(matches.probe[equal], matches.updates.filter(pa.array(equal)))


def with_keys(layout: Layout, wanted: Collection[int]) -> frozenset[int]:
    """Return some columns, and those that a look-up itself needs."""
    count = len(layout.schema)
    return frozenset({*wanted, *range(1 + len(layout.key)), count - 2, count - 1})


def taken(
    batch: pa.RecordBatch, rows: pa.Array, wanted: Collection[int] | None = None
) -> pa.RecordBatch:
    """Return rows of a batch; columns that are not ``wanted``, if that is said, are NULL."""
    if wanted is None:
        return batch.take(rows)
    columns = [
        column.take(rows) if i in wanted else pa.nulls(len(rows), column.type)
        for i, column in enumerate(batch.columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _in_run(run: Sorted, wanted: Int64s, columns: Collection[int] | None) -> Iterator[Matches]:
    """Yield the updates with these hashes, which are sorted, of each batch that has some."""
    starts = np.searchsorted(wanted, run.first, "left")
    ends = np.searchsorted(wanted, run.last, "right")
    for index in run.ahead(np.flatnonzero(starts < ends).tolist()):
        rows, nth = _equal_hashes(run.hashes(index), wanted[starts[index] : ends[index]])
        if rows.size:
            found = taken(run.batch(index), pa.array(rows), columns)
            yield Matches(starts[index] + nth, found)


def _in_batches(
    batches: list[pa.RecordBatch], wanted: Int64s, columns: Collection[int] | None
) -> Matches:
    """Return the updates with these hashes, which are sorted, in few small batches."""
    whole = concat(batches)
    order = np.argsort(kh_of(whole), kind="stable")
    rows, nth = _equal_hashes(Hashes(kh_of(whole)[order]), wanted)
    return Matches(nth, taken(whole, pa.array(order[rows]), columns))


def _equal_hashes(hashes: Hashes, wanted: Int64s) -> tuple[Int64s, Int64s]:
    """Return all pairs (row, index into ``wanted``) of equal hashes; both are sorted."""
    new = np.ones(len(wanted), np.bool_)
    new[1:] = wanted[1:] != wanted[:-1]
    low, count = hashes.find(wanted[new])  # each once: that of many rows is asked for often
    if len(low) < len(wanted):
        nth = np.cumsum(new) - 1
        low, count = low[nth], count[nth]
    hit = np.flatnonzero(count)
    low, count = low[hit], count[hit]
    if hit.size == count.sum():
        return low, hit
    before = np.cumsum(count) - count
    rows = np.arange(count.sum()) + np.repeat(low - before, count)
    return rows, np.repeat(hit, count)
