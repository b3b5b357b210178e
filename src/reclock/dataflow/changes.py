"""Changes that come from outside: in memory, or in runs that nobody has opened yet.

A tick takes in what was written to tables and what was read of sources. Small changes are
deltas in the driver's memory. Large ones were written to the store where they were made, in the
layout of the arrangement that divides them among parts (``Graph.entry``), sorted by hash: then
the driver has references, and the tasks that need them read their ranges.

A run that was staged before its time was known has one time for all of its updates, which its
reference carries (``Stamped``): binding it is a matter of references alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import RunCache
from reclock.arrangement.shard import within
from reclock.dataflow import delta as deltas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.keying import Keying
    from reclock.time.timestamp import Timestamp

_ALL: Final = (-(1 << 63), (1 << 63) - 1)
"""The least and the greatest hash."""


@dataclass(frozen=True)
class Stamped:
    """A run, and the time of all of its updates, unless it has their times."""

    ref: RunRef
    time: Timestamp | None = None

    def within(
        self, store: Store, layout: Layout, cache: RunCache, first: int, last: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the updates in a range of hashes, with their times."""
        for batch in within(cache.open(store, self.ref, layout), first, last):
            yield batch if self.time is None else self._at(batch, layout)

    def _at(self, batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
        times = pa.array(np.full(batch.num_rows, self.time, np.int64))
        columns = [*batch.columns[:-2], times, batch.columns[-1]]
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
        return sum(run.ref.rows for run in self.runs)

    def delta(self, keying: Keying) -> pa.RecordBatch:
        """Return all of them in memory, as a delta; ``keying`` is how the runs lie."""
        made = list(self.batches)
        scratch = RunCache()
        for run in self.runs:
            assert self.store is not None
            found = run.within(self.store, keying.layout, scratch, *_ALL)
            made += [keying.restore(batch) for batch in found]
        return deltas.union(made) if made else deltas.empty(keying.types)
