"""Refresh: the rows of a step, and the errors below it, at the times of a schedule.

The step is the last one of a view, and of no other: what it shows is what its query was at the last
refresh. A view that is recomputed after its first refresh, because another version of reclock
divides its plan otherwise, is refreshed then. Before the first refresh it has one error row, which
says so and goes with the refresh, so that it is not taken for an empty view.

Which time an update gets is the operator's (``operators.refresh``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import diff_of, time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import Output
from reclock.dataflow.operators import refresh as operator
from reclock.dataflow.operators.temporal import FOREVER, come_due
from reclock.dataflow.steps.faults import parted

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Tick
    from reclock.dataflow.keying import Keying
    from reclock.time.refresh import Schedule
    from reclock.time.timestamp import Timestamp

UNREFRESHED: Final = "55R00"
"""SQLSTATE of a view that has not been refreshed yet."""


@dataclass(frozen=True)
class Refresh:
    """The rows of ``source``, of ``types``, when the view is refreshed."""

    source: int
    pending: ArrangementId
    schedule: Schedule
    types: Types
    keying: Keying

    @property
    def inputs(self) -> tuple[int, ...]:
        """The step whose rows are delayed."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Emit what is refreshed in this tick, and keep what will be later."""
        parts = [come_due(tick.due(self.pending), self.keying)]
        made = operator.records(tick.delta(self.source), tick.errors(self.pending), self.types)
        time, first = time_of(made), self.schedule.first
        assert first is not None, "a view is refreshed at least once"
        if tick.hydrating and first <= tick.first:
            due = time
        else:
            due = operator.round_up(self.schedule, time)
            if tick.hydrating and tick.leads:
                made, due = self._announced(made, due, first, tick.first)
        here, later = due <= tick.last, (due > tick.last) & (due < FOREVER)
        now = made.filter(pa.array(here))
        parts.append(deltas.build(deltas.rows_of(now), due[here], diff_of(now)))
        rows, errors = parted(deltas.union(parts), len(self.types))
        waiting = made.filter(pa.array(later))
        columns = [canonical(column) for column in deltas.rows_of(waiting)]
        kept = self.keying.layout.batch(due[later], columns, time_of(waiting), diff_of(waiting))
        return Output(rows, errors, {self.pending: kept})

    def _announced(
        self, made: pa.RecordBatch, due: np.ndarray, first: Timestamp, now: int
    ) -> tuple[pa.RecordBatch, np.ndarray]:
        """Add the error row of a view that is not there yet, from now to its first refresh."""
        text = unrefreshed(first)
        errors = deltas.build(
            [pa.array([UNREFRESHED] * 2), pa.array([text] * 2)],
            np.full(2, now, np.int64),
            np.array([1, -1], np.int64),
        )
        nothing = deltas.empty(self.types)
        return (
            deltas.union([made, operator.records(nothing, [errors], self.types)]),
            np.concatenate([due, np.array([now, int(first)], np.int64)]),
        )


def unrefreshed(first: Timestamp) -> str:
    """Return what a view says that has not been refreshed yet."""
    return f"the materialized view has not been refreshed yet: it will be at {int(first)}"
