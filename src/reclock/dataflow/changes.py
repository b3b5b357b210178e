"""Changes that come from outside: in memory, or in runs that are not opened yet.

A tick takes in what was written to tables and what was read of sources. Small changes are
deltas in the driver's memory. Large ones were written to the store where they were made, in the
layout of the arrangement that divides them among parts (``Graph.entry``), sorted by hash: then
the driver has references, and the tasks that need them read their ranges.

A run that was staged before its time was known has one time for all of its updates, which its
reference carries: binding it is a matter of references alone. A run whose times were known before
may reach beyond a tick: then ``Stamped`` says which of them are meant. Of rows of transactions
those are meant that are released (``transaction_runs``). A run of rows, without
faults, lies as the collection of its source does, and becomes a run of it (``Changes.adoptable``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout, time_of
from reclock.arrangement.shard import within
from reclock.dataflow import delta as deltas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.transaction_runs import Chosen
    from reclock.time.timestamp import Timestamp

_ALL: Final = (-(1 << 63), (1 << 63) - 1)
"""The least and the greatest hash."""

FAULT: Final = 2
"""The last columns of a record say what is wrong with it: code and message."""


@dataclass(frozen=True)
class Stamped:
    """A run whose updates have their times: records, or if ``is_rows`` rows of the collection.

    Only what is at ``times``, from the first to the last, may be meant, or what is ``chosen`` of
    rows of transactions: ``count`` updates.
    """

    ref: RunRef
    times: tuple[Timestamp, Timestamp] | None = None
    count: int = 0
    is_rows: bool = False
    chosen: Chosen | None = None

    @classmethod
    def at(cls, ref: RunRef, time: Timestamp, *, is_rows: bool = False) -> Stamped:
        """Return a run that is bound to a time."""
        return cls(replace(ref, time=time), is_rows=is_rows)

    @property
    def rows(self) -> int:
        """How many updates are meant."""
        whole = self.times is None and self.chosen is None
        return self.ref.rows if whole else self.count

    @property
    def bytes(self) -> int:
        """About how many bytes these have: their share of the run."""
        return self.ref.length * self.rows // max(1, self.ref.rows)

    def within(
        self,
        store: Store,
        layout: Layout,
        cache: RunCache,
        hashes: tuple[int, int] = _ALL,
        *,
        records: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the updates in a range of hashes, in a layout of ``records`` or of rows.

        Rows become records that have no fault.
        """
        if self.chosen is not None:
            run = cache.open(store, self.ref, self.chosen.stored(layout))
            yield from (self.chosen.records(batch, layout) for batch in within(run, *hashes))
            return
        widened = self.is_rows and records
        stored = Layout(layout.key, layout.value[:-FAULT]) if widened else layout
        for batch in within(cache.open(store, self.ref, stored), *hashes):
            meant = batch if self.times is None else _between(batch, *self.times)
            yield _without_fault(meant, layout) if widened else meant


def _between(batch: pa.RecordBatch, first: Timestamp, last: Timestamp) -> pa.RecordBatch:
    times = time_of(batch)
    return batch.filter(pa.array((times >= first) & (times <= last)))


def _without_fault(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    nulls = [pa.nulls(batch.num_rows, field.type) for field in layout.value[-FAULT:]]
    columns = [*batch.columns[:-2], *nulls, *batch.columns[-2:]]
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema)


@dataclass(frozen=True)
class Changes:
    """The changes of one table or source in one tick."""

    batches: tuple[pa.RecordBatch, ...] = ()
    """Deltas."""
    runs: tuple[Stamped, ...] = ()
    store: Store | None = None
    """Where the runs are."""

    @property
    def rows(self) -> int:
        """How many updates there are."""
        return sum(len(batch) for batch in self.batches) + self.staged_rows

    @property
    def staged_rows(self) -> int:
        """How many of them are not in memory."""
        return sum(run.rows for run in self.runs)

    @property
    def bytes(self) -> int:
        """About how many bytes they have."""
        size: int = sum(batch.nbytes for batch in self.batches)
        return size + sum(run.bytes for run in self.runs)

    @property
    def adoptable(self) -> bool:
        """Whether all of them can become runs of a collection as they are."""
        whole = (run.is_rows and run.times is None for run in self.runs)
        return not self.batches and bool(self.runs) and all(whole)

    def delta(self, keying: Keying) -> pa.RecordBatch:
        """Return all of them in memory, as a delta; ``keying`` is how the runs lie."""
        made = list(self.batches)
        scratch = RunCache()
        for run in self.runs:
            assert self.store is not None
            found = run.within(self.store, keying.layout, scratch, records=True)
            made += [keying.restore(batch) for batch in found]
        return deltas.union(made) if made else deltas.empty(keying.types)
