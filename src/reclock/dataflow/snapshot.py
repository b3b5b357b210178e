"""The last record of every key: all that counts of records that get one time together.

The snapshot of an upsert source is bound at one time, so only the last record of a key matters:
what comes before it at the same time is never seen. Records without a key all stay: each of them
is an error of its own (``operators.upsert``).

The holder of a part of the snapshot may leave out what is not the last of that part: the last of
all is among what is left. Cost: a sort. Tests: tests/dataflow/test_snapshot.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class LastOfEach:
    """Where records have their key, and the order of those of a key."""

    key_at: tuple[int, ...]
    order_at: int

    def __call__(self, batches: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...]:
        """Return the last record of every key; records without a key all stay."""
        if not batches:
            return ()
        frame = pl.from_arrow(pa.Table.from_batches(batches))
        assert isinstance(frame, pl.DataFrame)
        names = [frame.columns[at] for at in self.key_at]
        frame = frame.sort(frame.columns[self.order_at], maintain_order=True)
        keyless = frame.select(pl.any_horizontal(pl.col(names).is_null())).to_series()
        kept = frame.filter(~keyless).unique(names, keep="last", maintain_order=True)
        whole = pl.concat([frame.filter(keyless), kept]).to_arrow().cast(batches[0].schema)
        return tuple(whole.combine_chunks().to_batches())
