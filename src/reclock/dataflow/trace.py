"""Traces: the state as an operator sees it, the stored updates of the keys that it asks for.

Definition. A trace of a collection, in a tick ``[lower, upper)``, holds the updates with
times before ``lower``, keyed by its layout. ``lookup`` of keys ``kh, <key…>`` returns all
their updates *as stored*: of any time, not consolidated, in no order; a key asked for
twice is answered twice; NULL finds NULL. What is stored and cancels adds up to nothing. Who needs
some columns only says which are ``wanted``: others of the value may then be NULL.

``arrangement.shard.Shard`` is a trace. ``EmptyTrace`` is that of a collection before its
first tick, ``DeltaTrace`` that of a delta in memory.

Tests: tests/dataflow/test_trace.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import kh_of
from reclock.arrangement.probe import Matches, taken, with_keys
from reclock.arrangement.row import rows_equal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from reclock.arrangement.layout import Int64s, Layout
    from reclock.arrangement.shard import Shard


class Trace(Protocol):
    """The stored updates of an arrangement, found by key."""

    @property
    def layout(self) -> Layout:
        """The columns of the arrangement."""
        ...

    def lookup(self, keys: pa.RecordBatch, wanted: Collection[int] | None = None) -> Matches:
        """Return the stored updates of ``kh, <key…>``."""
        ...

    def within(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the stored updates with a ``kh`` from ``first`` to ``last``, both included."""
        ...


@dataclass(frozen=True)
class EmptyTrace:
    """The trace in which nothing is stored yet."""

    layout: Layout

    def lookup(self, keys: pa.RecordBatch, wanted: Collection[int] | None = None) -> Matches:
        """Return no match."""
        del keys, wanted
        return Matches(np.empty(0, np.int64), self.layout.empty())

    def within(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield nothing."""
        del first, last
        yield from ()


@dataclass(frozen=True)
class DeltaTrace:
    """The updates of one batch of the layout, in canonical form, found by key."""

    layout: Layout
    updates: pa.RecordBatch

    @cached_property
    def _sorted(self) -> tuple[Int64s, Int64s]:
        kh = kh_of(self.updates)
        order = np.argsort(kh, kind="stable")
        return order, kh[order]

    def within(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the updates in a range of hashes."""
        order, stored = self._sorted
        low, high = np.searchsorted(stored, first, "left"), np.searchsorted(stored, last, "right")
        if low < high:
            yield self.updates.take(pa.array(order[low:high]))

    def lookup(self, keys: pa.RecordBatch, wanted: Collection[int] | None = None) -> Matches:
        """Return the updates of ``kh, <key…>``: hashes are searched, keys compared."""
        order, stored = self._sorted
        asked_for = kh_of(keys)
        low = np.searchsorted(stored, asked_for, "left")
        count = np.searchsorted(stored, asked_for, "right") - low
        probe = np.repeat(np.arange(len(asked_for)), count)
        place = np.arange(len(probe)) - np.repeat(np.cumsum(count) - count - low, count)
        chosen = None if wanted is None else with_keys(self.layout, wanted)
        updates = taken(self.updates, pa.array(order[place]), chosen)
        if self.layout.key and len(probe):
            at = pa.array(probe)
            asked = [column.take(at) for column in self.layout.keys(keys)]
            equal = rows_equal(self.layout.keys(updates), asked)
            if not equal.all():
                probe, updates = probe[equal], updates.filter(pa.array(equal))
        return Matches(probe, updates)


def trace_of(layout: Layout, shard: Shard | None) -> Trace:
    """Return the trace of an arrangement, which has no shard before its first run."""
    return EmptyTrace(layout) if shard is None else shard
