"""ENVELOPE MATERIALIZE: CDCv2 messages, which say of each time what changed and that it is all.

::

    {"array": [{"data": {…}, "time": t, "diff": d}, …]}       updates of one time
    {"progress": {"lower": [l], "upper": [u], "counts": [{"time": t, "count": n}, …]}}

Each transaction ends with the progress of its times, also one without data: a reader of this
topic alone, without the consistency topic, knows which times are complete. The header of
progress is the last time it completes; it is not among the messages that BEGIN and END count.
Messages have no keys: in CDCv2 any order is right, and so is reading one twice. The first
progress is stated from time 0 on: the topic has nothing before the sink begins, and a reader
need not know when that was.

A message has as many updates as fit into ``SIZE`` bytes. Cost: vectorised; the text of a whole
group is made at once, because how many messages there are depends on it.

Tests: tests/sinks/encode/test_cdcv2_encoder.py reads with ``reclock.change.cdcv2``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.sinks.encode.encoder import CHUNK, Updates, counted
from reclock.sinks.encode.json_format import as_bytes, objects
from reclock.sinks.encode.json_text import joined
from reclock.sinks.log import Messages
from reclock.time.frontier import last_complete

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.sinks.encode.encoder import Encoded, Fault
    from reclock.sinks.encode.json_format import JsonFormat
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

SIZE: Final = 65_536
"""How large a message becomes, if one update alone is not larger."""


@dataclass(frozen=True, slots=True)
class Cdcv2Encoder:
    """Updates and progress, in JSON, of a sink that ``begins`` at a time."""

    format: JsonFormat
    begins: int = 0

    def encode(
        self, updates: pa.RecordBatch | None, description: Description[Timestamp]
    ) -> Encoded:
        """Return the messages of all updates with times in ``[lower, upper)``; None for none."""
        times = np.empty(0, np.int64)
        moments, values = times, pa.array([], pa.binary())
        if updates is not None:
            found = Updates.of(updates)
            times = found.times
            moments, values = _messages(found, self._texts(found))
        return _Encoded(moments, values, self._progress(description, counted(times)))

    def _progress(
        self, description: Description[Timestamp], counts: Sequence[tuple[int, int]]
    ) -> Messages:
        """Return the message that says which times are complete."""
        if description.is_empty:
            return Messages(np.empty(0, np.int64), None, pa.array([], pa.binary()))
        body = {
            "lower": [0 if time == self.begins else time for time in description.lower],
            "upper": [*description.upper],
            "counts": [{"time": time, "count": count} for time, count in counts],
        }
        value = json.dumps({"progress": body}, separators=(",", ":")).encode()
        last = last_complete(description.upper) or 0
        return Messages(np.array([int(last)]), None, pa.array([value], pa.binary()))

    def _texts(self, updates: Updates) -> pa.Array:
        """Return each update as an object."""
        parts = []
        for start in range(0, len(updates), CHUNK):
            columns = [column.slice(start, CHUNK) for column in updates.columns]
            time, diff = (
                pl.Series(numbers[start : start + CHUNK]).cast(pl.String)
                for numbers in (updates.times, updates.diffs)
            )
            rows = objects(self.format.columns, columns)
            parts.append(joined(['{"data":', rows, ',"time":', time, ',"diff":', diff, "}"]))
        return pa.concat_arrays([as_bytes(part) for part in parts])


def _messages(updates: Updates, texts: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the messages with updates, and their times."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    full = ends // SIZE
    starts = np.flatnonzero(np.diff(updates.times, prepend=-1) | np.diff(full, prepend=-1))
    offsets = pa.array(np.append(starts, len(texts)))
    between, opening, closing, nothing = (
        pa.scalar(text, pa.large_binary()) for text in (b",", b'{"array":[', b"]}", b"")
    )
    together = pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), between)
    values = pc.binary_join_element_wise(opening, together, closing, nothing)
    return updates.times[starts], values


@dataclass(frozen=True, eq=False, slots=True)
class _Encoded:
    moments: NDArray[np.int64]
    values: pa.Array
    progress: Messages

    @property
    def faults(self) -> Sequence[Fault]:
        """Nothing: this envelope can say every change."""
        return ()

    @property
    def times(self) -> Sequence[tuple[int, int]]:
        """The times that have messages, ascending, each with how many; progress is none."""
        return counted(self.moments)

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order, progress last."""
        if len(self.moments):
            yield Messages(self.moments, None, self.values)
        if len(self.progress):
            yield self.progress
