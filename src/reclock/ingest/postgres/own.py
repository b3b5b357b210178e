"""The row of a database's own relation: its slot, how far the log is bound, and the last commit.

Definition. At a time t the row has the slot's name, the frontier of the log at t, and when the last
transaction before that frontier committed; NULL before the first. Log without transactions moves
the frontier alone. So a new process takes the last commit from the row that is there.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reclock.dataflow import delta as deltas
from reclock.ingest.postgres.resolve import TakenTable, looked_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.postgres.staging import Chunk
    from reclock.time.timestamp import Timestamp

_WIDTH = 3
_COMMITTED = 2


class OwnRow:
    """Makes the row at each time; ``types`` are those of the source's records."""

    def __init__(
        self, item: ObjectId, slot: str, types: Sequence[pa.DataType], state: TimelineState
    ) -> None:
        self._slot, self._types = slot, types
        self._order = 0
        self._committed: Any = None
        """When the last transaction committed that is durably bound."""
        if state.bindings[item].remap.bindings:
            found = looked_up(state, TakenTable(item, _WIDTH, (0,)), {(slot,)})
            self._committed = found[slot,][_COMMITTED] if found else None

    def settle(self, chunks: Sequence[Chunk]) -> None:
        """Note what is durably bound now."""
        self._committed = self._last(chunks)

    def at(self, chunks: Sequence[Chunk], time: Timestamp) -> pa.RecordBatch:
        """Return the change that the row is when ``chunks`` are bound."""
        self._order += 1
        row = [self._slot, str(chunks[-1].frontier), self._last(chunks)]
        given = [*row, self._order, False, None, None]
        columns = [pa.array([value], kind) for value, kind in zip(given, self._types, strict=True)]
        return deltas.build(columns, np.array([time], np.int64), np.ones(1, np.int64))

    def _last(self, chunks: Sequence[Chunk]) -> Any:
        commits = [c.committed_micros for c in chunks if c.committed_micros is not None]
        return commits[-1] if commits else self._committed
