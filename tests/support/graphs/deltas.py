"""Deltas and traces for tests of operators: from plain updates and back, tick by tick.

``Arranged`` is an arrangement as a dataflow keeps it: it grows by one run per tick, in the
bytes of real runs, compacted now and then, and is the trace of the next tick.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.merge import merge
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.change.update import Update
from reclock.dataflow.delta import Types, schema_of
from reclock.dataflow.trace import trace_of
from reclock.interval import Interval
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.trace import Trace


def delta_of(types: Types, log: Iterable[Update[Any, Timestamp]]) -> pa.RecordBatch:
    """Return updates of rows (tuples) as a delta.

    >>> delta_of((pa.int64(),), [Update((7,), Timestamp(3), -1)]).to_pydict()
    {'c0': [7], 'time': [3], 'diff': [-1]}
    """
    updates = list(log)
    columns = [
        pa.array([_as_arrow(u.data[i]) for u in updates], kind) for i, kind in enumerate(types)
    ]
    numbers = ([int(u.time) for u in updates], [u.diff for u in updates])
    columns += [pa.array(x, pa.int64()) for x in numbers]
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(types))


def _as_arrow(value: Any) -> Any:
    """Return a value as Arrow takes it: an interval is a struct, also in an array."""
    if isinstance(value, tuple | list):
        return [_as_arrow(item) for item in value]
    if isinstance(value, Interval):
        return {"days": value.days, "micros": value.microseconds, "months": value.months}
    return value


def log_of(delta: pa.RecordBatch) -> list[Update[Any, Timestamp]]:
    """Return a delta as updates of rows.

    >>> log_of(delta_of((pa.int64(),), [Update((7,), Timestamp(3), -1)]))
    [Update(data=(7,), time=Timestamp(3), diff=-1)]
    """
    columns = [column.to_pylist() for column in delta.columns]
    return [
        Update(tuple(row[:-2]), Timestamp(row[-2]), row[-1]) for row in zip(*columns, strict=True)
    ]


class Cut(NamedTuple):
    """The updates of one input in one tick ``[lower, upper)``."""

    lower: int
    upper: int
    updates: list[Update[Any, Timestamp]]


def cut(log: Iterable[Update[Any, Timestamp]], bounds: Sequence[int]) -> list[Cut]:
    """Return the updates of each tick between successive bounds, empty ones too."""
    updates = list(log)
    return [
        Cut(lower, upper, [u for u in updates if lower <= u.time < upper])
        for lower, upper in pairwise(bounds)
    ]


class Arranged:
    """An arrangement that grows tick by tick, in real runs in a store."""

    def __init__(self, layout: Layout, store: Store) -> None:
        self._layout = layout
        self._store = store
        self._cache = RunCache()
        self._refs: list[RunRef] = []
        self._upper = 0

    @property
    def trace(self) -> Trace:
        """What is stored so far."""
        refs = self._refs
        shard = Shard.open(self._layout, refs, self._store, self._cache) if refs else None
        return trace_of(self._layout, shard)

    def append(self, updates: pa.RecordBatch, upper: int) -> None:
        """Add the updates of a tick that ends before ``upper``."""
        lower, self._upper = self._upper, upper
        since = self._refs[-1].description.since if self._refs else _at(0)
        description = Description(_at(lower), _at(upper), since)
        with SegmentWriter(self._store, f"t{upper}", inline_limit=1 << 20) as writer:
            build(writer, "test", self._layout, pa.Table.from_batches([updates]), description)
            self._refs += writer.finish()

    def compact(self) -> None:
        """Merge all runs into one, with all times moved to the last complete one."""
        runs = [self._cache.open(self._store, ref, self._layout) for ref in self._refs]
        if runs:
            with SegmentWriter(self._store, f"m{self._upper}", inline_limit=1 << 20) as writer:
                merge(writer, "test", self._layout, runs, _at(max(0, self._upper - 1)))
                self._refs = list(writer.finish())


def _at(time: int) -> Antichain[Timestamp]:
    return Antichain.of(Timestamp(time))
