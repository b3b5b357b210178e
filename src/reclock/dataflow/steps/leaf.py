"""Leaves: the deltas of objects that were written to, and of constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import Tick
    from reclock.ids import ObjectId


@dataclass(frozen=True)
class Input:
    """The changes of an object that is written from outside."""

    item: ObjectId
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """No other steps."""
        return ()

    def run(self, tick: Tick) -> Output:
        """Return what the tick brings."""
        written = tick.written(self.item)
        return Output(deltas.empty(self.types) if written is None else written)


@dataclass(frozen=True, eq=False)
class Constant:
    """Rows that hold at every time: they appear when the view does, and never change."""

    columns: tuple[pa.Array, ...]
    counts: tuple[int, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        """No other steps."""
        return ()

    @property
    def types(self) -> Types:
        """The types of the columns."""
        return tuple(column.type for column in self.columns)

    def run(self, tick: Tick) -> Output:
        """Return all rows in the first tick, and nothing after it."""
        if not tick.hydrating:
            return Output(deltas.empty(self.types))
        diff = np.array(self.counts, np.int64)
        return Output(deltas.build(self.columns, np.full(len(diff), tick.last), diff))
