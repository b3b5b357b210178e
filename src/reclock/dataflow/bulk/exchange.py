"""What tasks leave for other tasks: sorted runs in the segment store, and who reads them.

``Shelf`` is what is there before a stage: for each arrangement the runs that tasks of
earlier stages exchanged, for each step the rows they kept, for each question Spark's
answers; and the runs of what the graph keeps. It is a value that pickles, of references
only. ``Reader`` opens it inside a worker and reads one part.

In a first load the kept collections are what is read, and no operator has a state; in a
tick the changes are what is read, and what is kept is the state before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import RunCache, process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout, kh_of
from reclock.arrangement.shard import Shard, within
from reclock.arrangement.stream import concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import Limits
from reclock.dataflow.keying import Keying
from reclock.dataflow.trace import trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.bulk.parts import Parts
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.dataflow.trace import Trace
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True)
class Kept:
    """An arrangement that the graph keeps: its runs, complete before ``upper``."""

    refs: tuple[RunRef, ...]
    upper: Antichain[Timestamp] | None

    @classmethod
    def of(cls, shard: Shard) -> Kept:
        """Return the references of an open shard."""
        return cls(tuple(run.ref for run in shard.runs), shard.upper)


@dataclass
class Shelf:
    """All that workers may read, in a tick from ``first`` to ``last``; see the module's head."""

    store: Store
    parts: Parts
    first: Timestamp
    last: Timestamp
    hydrating: bool
    kept: Mapping[ArrangementId, Kept]
    limits: Limits = field(default_factory=Limits)
    exchanged: dict[ArrangementId, list[RunRef]] = field(default_factory=dict)
    rows: dict[int, list[RunRef]] = field(default_factory=dict)
    answers: dict[str, list[RunRef]] = field(default_factory=dict)


def spill_layout(types: Types) -> Layout:
    """Return how rows lie that are read again by the task of the same part."""
    return Keying(types, ()).layout


def by_hash(updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return updates sorted by hash; those of one hash in the order they have."""
    kh = kh_of(updates)
    if (kh[1:] >= kh[:-1]).all():
        return updates
    return updates.take(pa.array(np.argsort(kh, kind="stable")))


class Reader:
    """One part of everything on a shelf."""

    def __init__(self, graph: Graph, shelf: Shelf, part: int) -> None:
        self._graph = graph
        self._shelf = shelf
        self.part = part
        self.first, self.last = shelf.parts.bounds(part)
        self._gathered: dict[ArrangementId, pa.RecordBatch] = {}

    @cached_property
    def _scratch(self) -> RunCache:
        """What is exchanged is read once, and its files are removed soon."""
        return RunCache()

    def arranged(self, name: ArrangementId) -> pa.RecordBatch:
        """Return the updates of an arrangement in this part's range.

        They are consolidated; those that are only passing are all there are, in their order.
        """
        made = self._gathered.get(name)
        if made is None:
            made = self._gathered[name] = self._gather(name)
        return made

    def collection(self, name: ArrangementId) -> pa.RecordBatch:
        """Return the rows of an arrangement in this part's range, as a delta."""
        return self._graph.keying(name).restore(self.arranged(name))

    def has(self, name: ArrangementId) -> bool:
        """Return whether the graph keeps an arrangement that has rows."""
        return name in self._shelf.kept

    def trace(self, name: ArrangementId) -> Trace:
        """Return the state of an arrangement before this tick; nothing in a first load."""
        layout = self._graph.arrangements[name].keying.layout
        return trace_of(layout, None if self._shelf.hydrating else self._shard(name))

    def kept_rows(self, step: int) -> pa.RecordBatch:
        """Return the rows that this part's task of an earlier stage kept."""
        types = self._graph.steps[step].types
        found = list(self._slices(spill_layout(types), self._shelf.rows.get(step, [])))
        if not found:
            return deltas.empty(types)
        keying = Keying(types, ())
        return deltas.union([keying.restore(batch) for batch in found])

    def answer(self, question: str, layout: Layout) -> pa.RecordBatch:
        """Return Spark's answer for this part's rows, in their order."""
        found = list(self._slices(layout, self._shelf.answers.get(question, [])))
        return concat(found) if found else layout.empty()

    def _gather(self, name: ArrangementId) -> pa.RecordBatch:
        layout = self._graph.keying(name).layout
        if name in self._shelf.exchanged:
            found = list(self._slices(layout, self._shelf.exchanged[name]))
            if not found:
                return layout.empty()
            whole = concat(found)
            return whole if name in self._graph.passing else consolidate(layout, whole)
        shard = self._shard(name) if self._shelf.hydrating else None
        if shard is None:
            return layout.empty()
        found = list(shard.snapshot_range(self._shelf.last, self.first, self.last))
        return concat(found) if found else layout.empty()

    def _shard(self, name: ArrangementId) -> Shard | None:
        kept = self._shelf.kept.get(name)
        if kept is None:
            return None
        layout = self._graph.arrangements[name].keying.layout
        return Shard.open(layout, kept.refs, self._shelf.store, process_cache(), kept.upper)

    def _slices(self, layout: Layout, refs: Sequence[RunRef]) -> Iterator[pa.RecordBatch]:
        for ref in refs:
            run = self._scratch.open(self._shelf.store, ref, layout)
            yield from within(run, self.first, self.last)
