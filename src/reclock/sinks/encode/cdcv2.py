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

In Avro a message is a record ``statement`` with the fields ``array`` and ``progress``, one of them
null, and inside them those of the JSON.

A message has as many updates as fit into ``SIZE`` bytes. Cost: vectorised; the text of a whole
group is made at once, because how many messages there are depends on it.

Tests: tests/sinks/encode/test_cdcv2_encoder.py reads with ``reclock.change.cdcv2``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.sinks.encode.avro_binary import integers, together
from reclock.sinks.encode.encoder import CHUNK, Updates, counted
from reclock.sinks.encode.json_format import as_bytes, objects
from reclock.sinks.encode.json_text import joined
from reclock.sinks.log import Messages
from reclock.time.frontier import last_complete

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.sinks.encode.avro_format import AvroFormat
    from reclock.sinks.encode.encoder import Encoded, Fault
    from reclock.sinks.encode.json_format import JsonFormat
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

    Numbers = NDArray[np.int64]

SIZE: Final = 65_536
"""How large a message becomes, if one update alone is not larger."""


class Wording(Protocol):
    """How statements become bytes."""

    def updates(self, columns: Sequence[pa.Array], times: Numbers, diffs: Numbers) -> pa.Array:
        """Return each update by itself."""
        ...

    def messages(self, updates: pa.Array) -> pa.Array:
        """Return lists of updates as messages."""
        ...

    def progress(self, said: Said) -> bytes:
        """Return the message that says which times are complete."""
        ...


class Said(NamedTuple):
    """A statement of progress."""

    lower: list[int]
    upper: list[int]
    counts: list[dict[str, int]]


@dataclass(frozen=True, slots=True)
class JsonWording:
    """Objects."""

    format: JsonFormat

    def updates(self, columns: Sequence[pa.Array], times: Numbers, diffs: Numbers) -> pa.Array:
        """Return each update as an object."""
        time, diff = (pl.Series(numbers).cast(pl.String) for numbers in (times, diffs))
        rows = objects(self.format.columns, columns)
        return as_bytes(joined(['{"data":', rows, ',"time":', time, ',"diff":', diff, "}"]))

    def messages(self, updates: pa.Array) -> pa.Array:
        """Return lists of updates as arrays."""
        inside = pc.binary_join(updates, _scalar(b","))
        return pc.binary_join_element_wise(
            _scalar(b'{"array":['), inside, _scalar(b"]}"), _scalar(b"")
        )

    def progress(self, said: Said) -> bytes:
        """Return the object that says which times are complete."""
        return json.dumps({"progress": said._asdict()}, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class AvroWording:
    """Records ``statement``, by the id of their schema."""

    format: AvroFormat

    def updates(self, columns: Sequence[pa.Array], times: Numbers, diffs: Numbers) -> pa.Array:
        """Return each update as a record."""
        row = self.format.bare(columns)
        return together([row, *(integers(pa.array(n)) for n in (times, diffs))], len(times))

    def messages(self, updates: pa.Array) -> pa.Array:
        """Return lists of updates as blocks of an array, before a progress that is null."""
        items = pc.binary_join(updates, _scalar(b""))
        counts = integers(pc.list_value_length(updates))
        head = self.format.header + _FIRST_IS_THERE
        return together([head, counts, items, _END + _NULL], len(updates))

    def progress(self, said: Said) -> bytes:
        """Return the record that says which times are complete."""
        numbers = [_block([[n] for n in frontier]) for frontier in (said.lower, said.upper)]
        counts = _block([[each["time"], each["count"]] for each in said.counts])
        body = b"".join([*numbers, counts])
        return self.format.header + _NULL + _FIRST_IS_THERE + body


_NULL, _FIRST_IS_THERE, _END = b"\0", b"\2", b"\0"


def _block(items: list[list[int]]) -> bytes:
    """Return an array of records of integers."""
    flat = [len(items), *(number for item in items for number in item)]
    return b"".join(integers(pa.array(flat)).to_pylist()) + _END if items else _END


@dataclass(frozen=True, slots=True)
class Cdcv2Encoder:
    """Updates and progress of a sink that ``begins`` at a time."""

    wording: Wording
    begins: int = 0

    def encode(
        self, updates: pa.RecordBatch | None, description: Description[Timestamp]
    ) -> Encoded:
        """Return the messages of all updates with times in ``[lower, upper)``; None for none."""
        times = np.empty(0, np.int64)
        moments, values = times, pa.array([], pa.binary())
        if updates is not None and updates.num_rows:
            found = Updates.of(updates)
            times = found.times
            moments, values = self._messages(found, self._texts(found))
        return _Encoded(moments, values, self._progress(description, counted(times)))

    def _progress(
        self, description: Description[Timestamp], counts: Sequence[tuple[int, int]]
    ) -> Messages:
        """Return the message that says which times are complete."""
        if description.is_empty:
            return Messages(np.empty(0, np.int64), None, pa.array([], pa.binary()))
        said = Said(
            [0 if time == self.begins else int(time) for time in description.lower],
            [*map(int, description.upper)],
            [{"time": time, "count": count} for time, count in counts],
        )
        value = self.wording.progress(said)
        last = last_complete(description.upper) or 0
        return Messages(np.array([int(last)]), None, pa.array([value], pa.binary()))

    def _texts(self, updates: Updates) -> pa.Array:
        """Return each update by itself."""
        parts = []
        for start in range(0, len(updates), CHUNK):
            columns = [column.slice(start, CHUNK) for column in updates.columns]
            some = slice(start, start + CHUNK)
            parts.append(self.wording.updates(columns, updates.times[some], updates.diffs[some]))
        return pa.concat_arrays(parts)

    def _messages(self, updates: Updates, texts: pa.Array) -> tuple[Numbers, pa.Array]:
        """Return the messages with updates, and their times."""
        ends = np.cumsum(pc.binary_length(texts).to_numpy())
        full = ends // SIZE
        starts = np.flatnonzero(np.diff(updates.times, prepend=-1) | np.diff(full, prepend=-1))
        offsets = pa.array(np.append(starts, len(texts)))
        values = self.wording.messages(pa.LargeListArray.from_arrays(offsets, texts))
        return updates.times[starts], values


def _scalar(text: bytes) -> pa.Scalar:
    return pa.scalar(text, pa.large_binary())


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
