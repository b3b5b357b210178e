"""The inputs of one part of a stage: messages of other parts, changes, and runs that are kept."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from reclock.arrangement.cache import RunCache, process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.shard import Shard
from reclock.arrangement.stream import concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.job.message import EXCHANGED, ROWS
from reclock.dataflow.trace import trace_of
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.dataflow.job.errand import Errand, Kept
    from reclock.dataflow.job.message import Inbox
    from reclock.dataflow.job.parts import Parts
    from reclock.dataflow.trace import Trace


class Reader:
    """One part of everything that an errand and the stages before have for it."""

    def __init__(self, graph: Graph, errand: Errand, parts: Parts, part: int, inbox: Inbox) -> None:
        self._graph = graph
        self._errand = errand
        self._inbox = inbox
        self.part = part
        self.first, self.last = parts.bounds(part)
        self._gathered: dict[ArrangementId, pa.RecordBatch] = {}
        self._placed: dict[ArrangementId, Callable[[], pa.RecordBatch]] = {}

    @cached_property
    def _scratch(self) -> RunCache:
        """Changes are read once, and their files are removed soon."""
        return RunCache()

    def arranged(self, name: ArrangementId) -> pa.RecordBatch:
        """Return the updates of an arrangement in this part's range.

        They are consolidated; those that are only passing, or written already, are all there are,
        in their order.
        """
        made = self._gathered.get(name)
        if made is None:
            made = self._gathered[name] = self._gather(name)
        return made

    def place(self, name: ArrangementId, made: Callable[[], pa.RecordBatch]) -> None:
        """Have an arrangement consist of what this part makes in this stage."""
        self._placed[name] = made

    def collection(self, name: ArrangementId) -> pa.RecordBatch:
        """Return the rows of an arrangement in this part's range, as a delta."""
        return self._graph.keying(name).restore(self.arranged(name))

    def trace(self, name: ArrangementId) -> Trace:
        """Return the state of an arrangement before this tick; nothing in a first load."""
        layout = self._graph.arrangements[name].keying.layout
        kept = None if self._errand.hydrating else self._errand.state.get(name)
        return trace_of(layout, None if kept is None else self._shard(name, kept))

    def kept_rows(self, step: int) -> pa.RecordBatch:
        """Return the rows that this part's task of an earlier stage kept."""
        found = self._inbox.batches(ROWS, str(step))
        return deltas.union(found) if found else deltas.empty(self._graph.steps[step].types)

    def _gather(self, name: ArrangementId) -> pa.RecordBatch:
        layout = self._graph.keying(name).layout
        errand = self._errand
        if name in self._placed:
            whole = self._placed[name]()
            return whole if name in self._graph.passing else consolidate(layout, whole)
        found = self._inbox.batches(EXCHANGED, name)
        hashes, records = (self.first, self.last), name in self._graph.passing
        for run in errand.inputs.get(name, ()):
            found += run.within(errand.store, layout, self._scratch, hashes, records=records)
        if found:
            whole = concat(found)
            as_it_is = records or name in errand.adopted
            return whole if as_it_is else consolidate(layout, whole)
        kept = errand.read.get(name)
        if kept is None:
            return layout.empty()
        shard = self._shard(name, kept)
        if errand.hydrating:
            parts = shard.snapshot_range(errand.last, self.first, self.last)
        else:
            upper = at(errand.last.step())
            parts = shard.changes_range(errand.first, upper, self.first, self.last)
        found = list(parts)
        return concat(found) if found else layout.empty()

    def _shard(self, name: ArrangementId, kept: Kept) -> Shard:
        layout = self._graph.arrangements[name].keying.layout
        return Shard.open(layout, kept.refs, self._errand.store, process_cache(), kept.upper)
