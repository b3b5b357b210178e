"""A shard: the runs of one hash partition, oldest first, read as one.

Definition. The runs' descriptions meet: each begins where the one before ends, or is a
sibling of it: the same interval, other keys. The shard describes ``[first lower, upper)``
since the latest since of its runs, where ``upper`` is that of the last run, or a later one
that the owner knows (nothing changed since, so no run was written); its updates are those
of all runs. For every t in ``[since, upper)``::

    snapshot(t) = { (row, Σ diff) : updates with time ≤ t }, without zeros
    changes(l, u) = updates with l ≤ time < u, when l is after since, or since is 0

Siblings with disjoint ranges of hashes, the parts of a Spark job, are read as one run (``family``).
Reads outside are refused, not answered approximately.

Tests: tests/arrangement/test_shard.py compares all of it with a Counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.family import by_range, is_sibling, joined
from reclock.arrangement.layout import kh_of, time_of
from reclock.arrangement.probe import Matches, probe
from reclock.arrangement.stream import between, collapse_to, merged
from reclock.errors import Unreadable
from reclock.time.antichain import Antichain
from reclock.time.description import Description

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from reclock.arrangement.cache import RunCache
    from reclock.arrangement.family import Sorted
    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import Run, RunRef
    from reclock.arrangement.store import Store
    from reclock.arrangement.stream import Retime
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True)
class Shard:
    """Open runs that follow one another; at least one, for an interval to be known."""

    layout: Layout
    runs: tuple[Run, ...]
    upper: Antichain[Timestamp] | None = None

    def __post_init__(self) -> None:
        """Refuse runs that do not meet."""
        _ = self.description

    @classmethod
    def open(
        cls,
        layout: Layout,
        refs: Sequence[RunRef],
        store: Store,
        cache: RunCache,
        upper: Antichain[Timestamp] | None = None,
    ) -> Shard:
        """Open the runs that a manifest names; they are all there is before ``upper``."""
        return cls(layout, cache.open_all(store, refs, layout), upper)

    @cached_property
    def description(self) -> Description[Timestamp]:
        """What all runs together describe."""
        whole = describe([run.ref for run in self.runs])
        if self.upper is None:
            return whole
        idle = Description(whole.upper, self.upper, whole.since)
        return whole.followed_by(idle)

    @cached_property
    def sources(self) -> tuple[Sorted, ...]:
        """What is read: runs, and siblings with disjoint ranges of hashes as one."""
        return joined(self.runs)

    @property
    def rows(self) -> int:
        """How many updates are stored."""
        return sum(run.ref.rows for run in self.runs)

    @property
    def bytes(self) -> int:
        """How many bytes the runs have."""
        return sum(run.ref.length for run in self.runs)

    def rows_from(self, lower: Timestamp) -> int:
        """Return about how many updates have times from ``lower`` on.

        Of a run that began before, as many as its share of the time.
        """
        found = 0.0
        for run in self.runs:
            this = run.ref.description
            if this.upper.is_closed:
                found += run.ref.rows
                continue
            begin, end = this.lower.element(), this.upper.element()
            if end > lower:
                found += run.ref.rows * (end - max(begin, lower)) / (end - begin)
        return round(found)

    def lookup(
        self, keys: pa.Table | pa.RecordBatch, wanted: Collection[int] | None = None
    ) -> Matches:
        """Return the stored updates of ``kh, <key…>``, at all times, not consolidated.

        What an incremental join wants: it multiplies, adds, and consolidates once. Columns of the
        value that are not ``wanted``, if that is said, may be NULL.
        """
        return probe(self.layout, self.sources, self.layout.conform_keys(keys), wanted)

    def lookup_at(self, keys: pa.Table | pa.RecordBatch, as_of: Timestamp) -> Matches:
        """Return the rows of ``keys`` as they are at ``as_of``, in the order of the keys."""
        self.check_readable(as_of)
        probed, updates = self.lookup(keys)
        due = time_of(updates) <= as_of
        probed = probed[due]
        rows = self.layout.rows(updates.filter(pa.array(due)))
        times = np.full(len(probed), as_of, np.int64)
        diffs = updates.column(updates.num_columns - 1).filter(pa.array(due))
        # With the index of the key in the place of its hash, the updates of each index are
        # consolidated by themselves, and sorted by it.
        tagged = self.layout.batch(probed, rows, times, diffs)
        made = consolidate(self.layout, tagged)
        index = kh_of(made)
        kh = keys.column(0).take(pa.array(index))
        hashes = kh.combine_chunks() if isinstance(kh, pa.ChunkedArray) else kh
        columns = [hashes, *made.columns[1:]]
        return Matches(index, pa.RecordBatch.from_arrays(columns, schema=self.layout.schema))

    def within(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the stored updates with a ``kh`` from ``first`` to ``last``, both included.

        At all times, not consolidated; only batches that reach into the range are touched.
        """
        for source in self.sources:
            yield from within(source, first, last)

    def snapshot(
        self, as_of: Timestamp, *, block_rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows at ``as_of`` with their multiplicities; every time is ``as_of``.

        Of each run so many rows are held at a time: by default some milliseconds of work.
        """
        self.check_readable(as_of)
        retime = collapse_to(self.layout, as_of)
        return merged(self.layout, self.sources, retime, block_rows=block_rows)

    def snapshot_range(self, as_of: Timestamp, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows at ``as_of`` whose ``kh`` is from ``first`` to ``last``, both included.

        Ranges that cover all of int64 give the snapshot in parts; only what is in the range
        is read.
        """
        self.check_readable(as_of)
        parts = [within(source, first, last) for source in self.sources]
        return merged(self.layout, parts, collapse_to(self.layout, as_of))

    def changes(self, lower: Timestamp, upper: Antichain[Timestamp]) -> Iterator[pa.RecordBatch]:
        """Yield the consolidated updates with times in ``[lower, upper)``."""
        runs = [run for family in self._overlapping(lower, upper) for run in family]
        return merged(self.layout, joined(runs), _between(lower, upper))

    def changes_range(
        self, lower: Timestamp, upper: Antichain[Timestamp], first: int, last: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same of the rows whose ``kh`` is from ``first`` to ``last``, both included."""
        runs = [run for family in self._overlapping(lower, upper) for run in family]
        parts = [within(source, first, last) for source in joined(runs)]
        return merged(self.layout, parts, _between(lower, upper))

    def changes_by_run(
        self, lower: Timestamp, upper: Antichain[Timestamp]
    ) -> Iterator[list[pa.RecordBatch]]:
        """Yield the same in pieces, one for each run and its siblings: later ones have later times.

        Runs meet, so no two of them have updates of one time, and siblings with ranges of their
        own none of one row. Only siblings whose hashes overlap are merged.
        """
        inside = _between(lower, upper)
        for family in self._overlapping(lower, upper):
            if by_range(family) is None:
                found = list(merged(self.layout, family, inside))
            else:
                found = [inside(batch) for run in family for batch in run]
            if batches := [batch for batch in found if batch.num_rows]:
                yield batches

    def _overlapping(self, lower: Timestamp, upper: Antichain[Timestamp]) -> list[list[Run]]:
        """Return the runs that may have times in ``[lower, upper)``, siblings together."""
        since = self.description.since
        nothing_moved = since.less_equal(lower.minimum())
        if not (nothing_moved or since.less_than(lower)):
            message = f"changes from {lower} are not readable"
            detail = f"times at or before since {since} have been moved"
            raise Unreadable(message, detail=detail)
        if not upper.precedes(self.description.upper):
            message = f"changes before {upper} are not complete"
            raise Unreadable(message, detail=f"upper is {self.description.upper}")
        floor = Antichain.of(lower)
        families: list[list[Run]] = []
        for run in self.runs:
            this = run.ref.description
            if this.upper.precedes(floor) or upper.precedes(this.lower):
                continue
            if families and is_sibling(families[-1][0].ref.description, this):
                families[-1].append(run)
            else:
                families.append([run])
        return families

    def check_readable(self, as_of: Timestamp) -> None:
        """Refuse a time that is not complete yet, or not told apart any more."""
        if not self.description.definite_at(as_of):
            message = f"a read at {as_of} is not possible"
            detail = f"readable from {self.description.since} to before {self.description.upper}"
            raise Unreadable(message, detail=detail)


def _between(lower: Timestamp, upper: Antichain[Timestamp]) -> Retime:
    return between(lower, None if upper.is_closed else upper.element())


def within(run: Sorted, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield the updates of a run in a range of ``kh``; other batches are not touched."""
    begin = int(np.searchsorted(run.last, first, "left"))
    end = int(np.searchsorted(run.first, last, "right"))
    for index in run.ahead(range(begin, end)):
        batch = run.batch(index)
        kh = kh_of(batch)
        low = int(np.searchsorted(kh, first, "left"))
        high = int(np.searchsorted(kh, last, "right"))
        if low < high:
            yield batch.slice(low, high - low)


def count_from(run: Run, first: int) -> int:
    """Return how many updates of a run have a ``kh`` of ``first`` or more.

    At most the batch in which ``first`` lies is touched.
    """
    begin = int(np.searchsorted(run.last, first, "left"))
    rest = int(run.sizes[begin:].sum())
    if begin == run.batch_count or run.first[begin] >= first:
        return rest
    return rest - int(np.searchsorted(kh_of(run.batch(begin)), first, "left"))


def describe(refs: Sequence[RunRef]) -> Description[Timestamp]:
    """Return what runs that follow one another, and siblings, describe together."""
    first = last = refs[0].description
    since = first.since
    for ref in refs[1:]:
        this = ref.description
        meets = this.lower is last.upper or this.lower == last.upper
        if not meets and not is_sibling(last, this):
            last.followed_by(this)  # refuses, and says why
        if this.since is not since and this.since != since:
            since = since.join(this.since)
        last = this
    return Description(first.lower, last.upper, since)
