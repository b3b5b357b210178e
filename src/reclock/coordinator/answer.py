"""The answer of a query, a batch at a time.

What ``Result`` has as a list, an ``Answer`` gives as Arrow batches, in order: whoever sends rows
on needs no Python object per value, and no more than a batch of them at once.

Tests: tests/coordinator/test_answer.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from reclock.coordinator.subscribe.subscription import Subscription
    from reclock.sql.schema import Schema
    from reclock.time.timestamp import Timestamp

BATCH_ROWS: Final = 4_096
_BATCH_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class CopyOut:
    """What COPY … TO STDOUT gives: an answer, or what is followed, to be written as lines."""

    of: Answer | Subscription


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns and rows of a query, at the time it was answered at."""

    schema: Schema
    table: pa.Table
    timestamp: Timestamp

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows: a few thousand at a time, fewer if they are large."""
        size = max(1, self.table.nbytes // max(1, self.table.num_rows))
        yield from self.table.to_batches(max(1, min(BATCH_ROWS, _BATCH_BYTES // size)))
