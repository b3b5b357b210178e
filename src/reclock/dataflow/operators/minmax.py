"""min, max and top-k at a cost that does not grow with the group: a tournament.

Rule. The first k rows of a group are the first k of the winners of its parts. So a chain
of stages: stage n splits each group into 16ⁿ buckets by the hash of the row and keeps the
first k of each bucket; stage n−1 has buckets 16 times as large, of winners only; stage 0
has one bucket, the group. ::

    rows ─ bucketed ─ stage n ─ stage n−1 ─ … ─ stage 0 ─ the first k of each group

A change is looked at in its own bucket of 1/16ⁿ of the group; it goes on to the next stage
only if it changes the winners there, where a bucket holds at most 16 · k rows. Cost: at
most 16 · k rows per stage and changed row, in groups of up to 16ⁿ⁺¹ rows; more rows than
that make the first stage's buckets larger. Each stage arranges its own input (the first
all rows, the others winners only).

How the graph builder composes it. For ``min(x)`` or ``max(x)`` by a key: project (key…, x),
drop the rows where x is NULL (``mask``), make ``tournament(types, key, order, limit=1)``
with x ascending for min and descending for max, and run the stages as ordinary steps, each
with an arrangement of its own by ``stage.keying``, fed by the delta that goes into it::

    delta = bucketed(delta, stages[0].level)
    for stage in stages: delta = stage.step(delta, its trace)

The last delta has the columns of the first, one row per group that has a value. Several
min and max are several chains, joined by the caller with the groups that exist (a group
whose x are all NULL has no row here). For top-k the chain is the same with a limit and an
offset; only the last stage skips the offset.

Tests: tests/dataflow/test_minmax.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.topk import TopK

if TYPE_CHECKING:
    from reclock.dataflow.ordering import OrderBy
    from reclock.dataflow.trace import Trace

DIGIT: Final = 4
FAN_IN: Final = 1 << DIGIT
"""Buckets that meet in one of the next stage: few, so that the cost varies little with size."""
LEVELS: Final = 5
"""Enough for groups of 16 million rows."""


@dataclass(frozen=True)
class Stage:
    """One step of the chain: the winners of each bucket, in the buckets of the next stage."""

    level: int
    top: TopK

    @property
    def keying(self) -> Keying:
        """How the stage's input, with its bucket as last column, is arranged."""
        return self.top.keying

    def step(self, delta: pa.RecordBatch, trace: Trace) -> pa.RecordBatch:
        """Return the change of the winners; from the last stage, without the bucket."""
        won = self.top.step(delta, trace)
        *rows, bucket = deltas.rows_of(won)
        if self.level:
            rows.append(pa.array(bucket.to_numpy() // FAN_IN))
        return deltas.build(rows, *won.columns[-2:])


def tournament(
    types: deltas.Types,
    key: tuple[int, ...],
    order: tuple[OrderBy, ...],
    limit: int,
    *,
    offset: int = 0,
    levels: int = LEVELS,
) -> tuple[Stage, ...]:
    """Return the stages, first to last, for rows of these types grouped by ``key``."""
    bucketed_types = (*types, pa.int64())
    keying = Keying(bucketed_types, (*key, len(types)))
    inner = TopK(keying, order, limit + offset)
    last = replace(inner, limit=limit, offset=offset)
    return tuple(Stage(level, inner if level else last) for level in reversed(range(levels + 1)))


def bucketed(delta: pa.RecordBatch, level: int = LEVELS) -> pa.RecordBatch:
    """Return the delta with a last column, the row's bucket at ``level``."""
    rows = [canonical(column) for column in deltas.rows_of(delta)]
    hashes = deltas.key_hash(rows, delta.num_rows).view(np.uint64)
    # The leading digits of the hash: they are its best, and a bucket of the next stage is
    # the union of those that share all of them but the last.
    bucket = (hashes >> np.uint64(1)) >> np.uint64(63 - DIGIT * level)
    return deltas.build([*rows, pa.array(bucket.view(np.int64))], *delta.columns[-2:])
