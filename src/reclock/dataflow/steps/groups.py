"""Any aggregate and any window function: Spark recomputes it for the changed groups.

The rows of each changed group before the tick and after each of its changed times are laid
out with the number of their version; Spark computes the plan node for each version by
itself; the change is the difference between the results of successive versions. State: the
input, arranged by the group's key. Cost: the changed groups.

A grouping without keys has one group, which exists without rows too: from the first tick
on, a version without rows has the row ``for_none``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.stream import concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import parts_of
from reclock.dataflow.evaluate import GroupRequest
from reclock.dataflow.graph import Output
from reclock.dataflow.operators.groups import BEFORE, Snapshots, differences, snapshots, tag

if TYPE_CHECKING:
    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Running, Tick
    from reclock.dataflow.keying import Keying
    from reclock.sql.plan.relation import Reduce, Window


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows that ``node`` (a Reduce or Window) gives for each group."""

    source: int
    state: ArrangementId
    keying: Keying
    node: Reduce | Window
    types: Types
    for_none: tuple[pa.Array, ...] | None = None

    @property
    def inputs(self) -> tuple[int, ...]:
        """The grouped step."""
        return (self.source,)

    def run(self, tick: Tick) -> Output | Running:
        """Compute the changed groups before and after, and subtract."""
        delta = tick.delta(self.source)
        if delta.num_rows == 0:
            if self.for_none is None or not tick.hydrating:
                return Output(deltas.empty(self.types))
            once = np.array([tick.last]), np.array([1])
            return Output(deltas.build(self.for_none, *once))
        return self._changed(tick, delta)

    def _changed(self, tick: Tick, delta: pa.RecordBatch) -> Running:
        snaps = snapshots(delta, tick.trace(self.state), self.keying)
        answer = yield GroupRequest(snaps.expanded(), self.node)
        assert isinstance(answer, pa.RecordBatch)
        good, bad = _parted(answer)
        if self.for_none is not None:
            good = self._with_empty(tick, snaps, good, answer.column(0).to_numpy())
        errors = None if bad is None else differences(snaps, bad)
        return Output(differences(snaps, good), errors)

    def _with_empty(
        self, tick: Tick, snaps: Snapshots, results: pa.RecordBatch, answered: Int64s
    ) -> pa.RecordBatch:
        """Add the row of the group without rows to the versions that have none."""
        missing = np.setdiff1d(np.arange(len(snaps.group)), answered)
        if tick.hydrating:
            missing = missing[snaps.predecessor[missing] != BEFORE]
        assert self.for_none is not None
        at = pa.array(np.zeros(len(missing), np.int64))
        rows = [column.take(at) for column in self.for_none]
        empty = tag(missing, rows, np.ones(len(missing), np.int64))
        return concat([results, empty])


def _parted(answer: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the rows with values, and the errors (code, message) in place of the others."""
    version, bad = answer.column(0), answer.column(answer.num_columns - 1)
    columns = answer.columns[1:-1]
    if bad.null_count == len(bad):
        return tag(version.to_numpy(), columns, np.ones(len(bad), np.int64)), None
    fine, failed = pc.is_null(bad), pc.is_valid(bad)
    good = version.filter(fine).to_numpy(zero_copy_only=False)
    wrong = version.filter(failed).to_numpy(zero_copy_only=False)
    return (
        tag(good, [c.filter(fine) for c in columns], np.ones(len(good), np.int64)),
        tag(wrong, parts_of(bad.filter(failed)), np.ones(len(wrong), np.int64)),
    )
