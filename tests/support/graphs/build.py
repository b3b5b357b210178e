"""From the updates of a tick, in any order, to a run.

Cost: one sort. Input of more than ``PIECE_BYTES`` is consolidated in pieces, then merged,
so a first load does not need several times its size in memory.

The same updates give the same bytes, in whatever order and chunks they come: names of
segments depend on it. Tests: tests/arrangement/test_build.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import time_of
from reclock.arrangement.segment import rows_per_batch
from reclock.arrangement.stream import merged
from reclock.errors import InvalidValue
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.segment import SegmentWriter
    from reclock.time.description import Description

PIECE_BYTES: Final = 1 << 30


def build(
    writer: SegmentWriter,
    name: str,
    layout: Layout,
    updates: pa.Table,
    description: Description[Timestamp],
) -> None:
    """Add the run of ``updates``, all with times in ``description``, to a segment."""
    pieces = [consolidate(layout, piece) for piece in _conformed(layout, updates, description)]
    batches = iter(pieces) if len(pieces) == 1 else merged(layout, [[p] for p in pieces])
    per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
    writer.add(name, layout, batches, description, batch_rows=per_batch)


def _conformed(
    layout: Layout, updates: pa.Table, description: Description[Timestamp]
) -> Iterator[pa.RecordBatch]:
    """Yield pieces of bounded size, in canonical form, their times checked."""
    size = updates.num_rows
    step = max(1, PIECE_BYTES * size // max(1, updates.nbytes))
    for start in range(0, max(1, size), step):
        piece = layout.conform(updates.slice(start, step))
        if piece.num_rows:
            times = time_of(piece)
            for time in (int(times.min()), int(times.max())):
                if time < 0 or not description.contains(Timestamp(time)):
                    message = f"an update at {time} is outside {description}"
                    raise InvalidValue(message)
        yield piece
