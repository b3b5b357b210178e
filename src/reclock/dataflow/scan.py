"""The rows of a collection at a time.

A collection is an arrangement of its rows (``Arranged``). Its snapshot is read from the
runs, each row as often as it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import diff_of
from reclock.errors import NegativeCount

if TYPE_CHECKING:
    from reclock.arrangement.shard import Shard
    from reclock.dataflow.keying import Keying
    from reclock.time.timestamp import Timestamp


class Arranged(NamedTuple):
    """A collection arranged by some of its columns; no shard before its first run."""

    keying: Keying
    shard: Shard | None


def names_of(width: int) -> list[str]:
    """Return the names of stored columns: ``c0, c1, …``."""
    return [f"c{i}" for i in range(width)]


def repeated(keying: Keying, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of consolidated updates, where they were, each as often as it is there."""
    rows = keying.columns(updates)
    made = pa.RecordBatch.from_arrays(rows, names=names_of(len(rows)))
    diff = diff_of(updates)
    if (diff == 1).all():
        return made
    if (diff < 0).any():
        message = "a stored row is there a negative number of times"
        detail = f"a row of {len(rows)} columns occurs {diff.min()} times"
        raise NegativeCount(message, detail=detail)
    return made.take(pa.array(np.repeat(np.arange(len(diff)), diff)))


def snapshot(of: Arranged, as_of: Timestamp) -> pa.Table:
    """Return all rows of a collection at ``as_of``."""
    keying, shard = of
    names = names_of(len(keying.types))
    batches = [] if shard is None else [repeated(keying, b) for b in shard.snapshot(as_of)]
    schema = pa.schema([pa.field(n, kind) for n, kind in zip(names, keying.types, strict=True)])
    return pa.Table.from_batches(batches, schema)
