"""A query as of a time before anybody kept its rows.

The rows of a query that is followed are kept from some time s on. For the times before, back
to what its inputs still keep, it is answered at every time at which an input changed, and the
differences between the answers are the changes: exact, at the cost of one read of the query
per such time. From s on changes cost what they change.

Tests: tests/subscribe/test_subscribe_properties.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reclock.arrangement.layout import time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of, errors_of
from reclock.engine.error_place import Asked, placed
from reclock.engine.leaves import leaves, shapes
from reclock.engine.object_changes import decoded
from reclock.engine.read import check_errors
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from reclock.engine.engine import Engine
    from reclock.engine.update import Update
    from reclock.engine.world import World
    from reclock.subscribe.target import Target


@dataclass(frozen=True)
class Past:
    """A query between two times, from a world that is pinned."""

    engine: Engine
    world: World
    target: Target

    def snapshot(self, time: Timestamp) -> list[Update]:
        """Return the rows at a time, as updates."""
        return self._decoded(self._answer(time))

    def changes(self, as_of: Timestamp, last: Timestamp) -> Iterator[list[Update]]:
        """Yield the changes of each time in ``(as_of, last]`` that has any."""
        before = self._answer(as_of)
        for time in self._times(as_of.step(), last.step()):
            after = self._answer(time)
            undone = deltas.negate(before)
            moved = deltas.build(
                deltas.rows_of(undone),
                np.full(undone.num_rows, time, np.int64),
                undone.column(undone.num_columns - 1),
            )
            change = deltas.consolidated(deltas.union([after, moved]))
            if change.num_rows:
                yield self._decoded(change)
            before = after

    def _answer(self, time: Timestamp) -> pa.RecordBatch:
        """Return the rows at ``time`` as a delta, each once with its multiplicity."""
        asked = self.target.asked
        check_errors(self.world, asked, time)
        shape, traces = shapes(self.world, asked)
        with placed(Asked(asked, asked, time)):
            answer = self.engine.peek(asked, shape, traces, time).combine_chunks()
        columns = [
            c.combine_chunks() if hasattr(c, "combine_chunks") else c for c in answer.columns
        ]
        times = np.full(answer.num_rows, time, np.int64)
        ones = np.ones(answer.num_rows, np.int64)
        return deltas.consolidated(deltas.build(columns, times, ones))

    def _times(self, lower: Timestamp, upper: Timestamp) -> list[Timestamp]:
        """Return the times in ``[lower, upper)`` at which an input changed."""
        found: set[int] = set()
        for item in leaves(self.world, self.target.asked):
            state = self.world.of(item)
            for arrangement in (collection_of(item.id), errors_of(item.id)):
                if arrangement in state.shape.graph.arrangements:
                    for batch in state.traces[arrangement].changes(lower, at(upper)):
                        found |= set(time_of(batch).tolist())
        return [Timestamp(time) for time in sorted(found)]

    def _decoded(self, delta: pa.RecordBatch) -> list[Update]:
        kinds = [c.type for c in self.target.schema]
        return decoded(deltas.rows_of(delta), kinds, delta)
