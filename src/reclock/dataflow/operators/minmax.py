"""min, max and top-k at a cost that does not grow with the group: a tournament.

Rule. The first k rows of a group are the first k of the winners of its parts. So a chain
of stages: the first splits each group into 2ⁿ buckets by n bits of the hash of the row, and
keeps the first k of each bucket; the next has fewer bits, so larger buckets, of winners
only; the last has none: one bucket, the group. ::

    rows ─ bucketed ─ stage of n bits ─ … ─ stage of 0 bits ─ the first k of each group

A change is looked at in its own bucket of 1/2ⁿ of the group; it goes on to the next stage
only if it changes the winners there, where a bucket holds at most k rows from each of those
that met in it. Cost: that many rows per stage and changed row; groups of more than k · 2ⁿ
rows make the first stage's buckets larger. Each stage arranges its own input (the first all
rows, the others winners only).

How many bits (``stages_of``). If f buckets meet, a change sees f · k rows, and goes on once
in f times. For few places f = 16 makes few stages. For many, f = 4 keeps what is looked at
small, and the same whatever the size of the group; near the end, where hardly any change
arrives, f is 16 again.

How the graph builder composes it. For ``min(x)`` or ``max(x)`` by a key: project (key…, x),
drop the rows where x is NULL (``mask``), make ``tournament(types, key, order, 1, bits=…)``
with x ascending for min and descending for max, and run the stages as ordinary steps, each
with an arrangement of its own by ``stage.keying``, fed by the delta that goes into it::

    delta = bucketed(delta, stages[0].bits)
    for stage in stages: delta = stage.step(delta, its trace)

The last delta has the columns of the first, one row per group that has a value. Several
min and max are several chains, joined by the caller with the groups that exist (a group
whose x are all NULL has no row here). For top-k the chain is the same with a limit and an
offset; only the last stage skips the offset.

Tests: tests/dataflow/test_minmax.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
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

FAN_IN: Final = 16
"""How many buckets meet in one of the next stage, at most."""
GROUPED_BITS: Final = 12
"""Buckets of the first stage, for one place in groups: 65 thousand rows each."""
WHOLE_BITS: Final = 20
"""The same for a collection as a whole: 16 million rows."""
FEW_PLACES: Final = 4


@dataclass(frozen=True)
class Stage:
    """One step of the chain: the winners of each bucket, in the buckets of the next stage.

    A bucket has ``bits`` of the hash, of which the next stage leaves out ``fewer``.
    """

    bits: int
    fewer: int
    top: TopK

    @property
    def keying(self) -> Keying:
        """How the stage's input, with its bucket as last column, is arranged."""
        return self.top.keying

    def step(self, delta: pa.RecordBatch, trace: Trace) -> pa.RecordBatch:
        """Return the change of the winners; from the last stage, without the bucket."""
        won = self.top.step(delta, trace)
        *rows, bucket = deltas.rows_of(won)
        if self.bits:
            rows.append(pa.array(bucket.to_numpy() >> self.fewer))
        return deltas.build(rows, *won.columns[-2:])


def stages_of(places: int, *, grouped: bool) -> tuple[int, ...]:
    """Return the bits of each stage's buckets that suit so many places.

    >>> stages_of(1, grouped=False), stages_of(10, grouped=False)
    ((20, 16, 12, 8, 4, 0), (18, 16, 14, 12, 10, 8, 6, 4, 0))
    >>> stages_of(10, grouped=True)
    (8, 4, 0)
    """
    most = max(places - 1, 0).bit_length()
    if grouped or places < FEW_PLACES:
        # A bucket of k rows throws none out: with more places, fewer and larger ones do.
        first = (GROUPED_BITS if grouped else WHOLE_BITS) - 4 * round(most / 4)
        return tuple(range(max(first, 0), -1, -4))
    first = WHOLE_BITS + 2 - most
    return (*range(max(first - first % 2, 10), 4, -2), 4, 0)


def tournament(
    types: deltas.Types,
    key: tuple[int, ...],
    order: tuple[OrderBy, ...],
    limit: int,
    *,
    offset: int = 0,
    bits: tuple[int, ...],
) -> tuple[Stage, ...]:
    """Return the stages, first to last, for rows of these types grouped by ``key``.

    ``bits`` are those of each stage's buckets, fewer and fewer; the last has none.
    """
    bucketed_types = (*types, pa.int64())
    keying = Keying(bucketed_types, (*key, len(types)))
    inner = TopK(keying, order, limit + offset)
    last = replace(inner, limit=limit, offset=offset)
    return (
        *(Stage(here, here - then, inner) for here, then in pairwise(bits)),
        Stage(0, 0, last),
    )


def bucketed(delta: pa.RecordBatch, bits: int) -> pa.RecordBatch:
    """Return the delta with a last column, the row's bucket of ``bits``."""
    rows = [canonical(column) for column in deltas.rows_of(delta)]
    hashes = deltas.key_hash(rows, delta.num_rows).view(np.uint64)
    # The leading bits of the hash: they are its best, and a bucket of the next stage is
    # the union of those that share all of them but the last.
    bucket = (hashes >> np.uint64(1)) >> np.uint64(63 - bits)
    return deltas.build([*rows, pa.array(bucket.view(np.int64))], *delta.columns[-2:])
