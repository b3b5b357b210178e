"""Faults: the rows of a source without keys (ENVELOPE NONE), and its error rows.

Rule. The last two columns of a record are (code, message): an update whose code is NULL is a row,
any other an error row of that code and message, at its time and with its diff. Linear: it needs no
state. Cost: nothing but the columns' references when no update has a code.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import Graph, Tick
    from reclock.ids import ObjectId


@dataclass(frozen=True)
class Faults:
    """The records of ``source`` that are rows; the others are errors."""

    source: int
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The records."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Split the faults off."""
        return Output(*parted(tick.delta(self.source), len(self.types)))


def rows_steps(graph: Graph, item: ObjectId) -> frozenset[int]:
    """Return the steps that have the rows of a source without an envelope; none of another one.

    They are the step that splits faults off, and those that stand for the collection.
    """
    at = graph.views[item] if item in graph.sources else None
    if at is None or not isinstance(graph.steps[at], Faults):
        return frozenset()
    return frozenset({at, *(r for r in graph.references if graph.steps[r].inputs == (at,))})


def parted(delta: pa.RecordBatch, width: int) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the rows, of the first ``width`` columns, and the error rows if there are any."""
    *_, code, _message, _time, _diff = delta.columns
    rows = deltas.build(delta.columns[:width], *delta.columns[-2:])
    if code.null_count == len(code):
        return rows, None
    failed = pc.is_valid(code)
    return rows.filter(pc.invert(failed)), error_rows(delta.filter(failed))


def error_rows(delta: pa.RecordBatch) -> pa.RecordBatch:
    """Return the last two user columns, code and message, as error rows."""
    return deltas.build(delta.columns[-4:-2], *delta.columns[-2:])
