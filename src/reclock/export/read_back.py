"""The relation that a sink's topic holds: what a reader of all of it has in the end.

Definition. With F the sink's frontier, the records of its data topic, all at times before F, are
the relation as of F:

    a key that is unique    the last record of each key: UPSERT, and DEBEZIUM's ``after``.
                            A compacted topic says the same as a whole one
    no such key             the sum of all records: DEBEZIUM, MATERIALIZE. Compaction would
                            have lost some: refused before anything is read (``recover``)

Values are decoded as a source with the columns of the relation decodes them, which reads back
what a sink wrote. A record that does not decode, one at a time that the sink has not come to, or
a row that is there less than zero times: the topic is not this sink's alone, an error.

Cost: reads the topic once; memory is that of the relation, encoded or decoded.

Tests: tests/export/test_read_back.py, test_recover.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.layout import diff_of
from reclock.catalog.item import TableColumn
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.dataflow import delta as deltas
from reclock.dataflow.types import arrow_type
from reclock.errors import SinkRegressed
from reclock.ingest.columns import decode_of
from reclock.sinks.failure import Stop
from reclock.sql.statement.column import ColumnDefinition, ColumnList
from reclock.sql.statement.source import CreateSource, SourceEnvelope
from reclock.sql.types import BIGINT, Array, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.sql.schema import Schema
    from reclock.sql.statement import CreateSink
    from reclock.time.timestamp import Timestamp

    Records = Iterable[tuple[pa.RecordBatch, NDArray[np.int64]]]
    """Records with partition, offset, key and value, and their times."""

_PLACES: Final = 2
_SLACK: Final = 100_000
"""How many records wait before those that others replace are forgotten."""

_RAW: Final = ("partition", "offset", "key", "value")


@dataclass(frozen=True)
class Topic:
    """What a sink's topic has: rows of ``schema``; ``keyed`` if its key is unique."""

    statement: CreateSink
    schema: Schema
    keyed: bool

    def contents(self, records: Records, frontier: Timestamp) -> pa.RecordBatch:
        """Return the rows as a delta at time 0, each once."""
        checked = _checked(records, frontier)
        parts = self._last(checked) if self.keyed else self._all(checked)
        whole = deltas.empty(self._types)
        for part in parts:
            whole = deltas.consolidated(deltas.union([whole, part]))
        if (diff_of(whole) < 0).any():
            why = "a row is taken away that was never there"
            raise _foreign(why)
        return whole

    @property
    def _types(self) -> deltas.Types:
        return tuple(arrow_type(column.type) for column in self.schema)

    def _last(self, records: Records) -> Iterator[pa.RecordBatch]:
        """Yield the last row of each key."""
        kept: pl.DataFrame | None = None
        waiting: list[pl.DataFrame] = []
        rows = 0
        for batch, times in records:
            frame = pl.from_arrow(batch.select(_RAW))
            assert isinstance(frame, pl.DataFrame)
            waiting.append(frame.with_columns(pl.Series("time", times)))
            rows += len(frame)
            if rows > _SLACK + (0 if kept is None else len(kept)):
                kept, waiting, rows = _latest(kept, waiting), [], 0
        whole = _latest(kept, waiting) if waiting else kept
        if whole is None:
            return
        live = whole.filter(pl.col("value").is_not_null()).drop("time").to_arrow()
        for batch in live.combine_chunks().to_batches():
            columns = [pc.cast(c, _RAW_TYPES[n]) for n, c in zip(_RAW, batch.columns, strict=True)]
            raw = pa.RecordBatch.from_arrays(columns, names=list(_RAW))
            yield from (part for part in self._decoded(raw) if (diff_of(part) > 0).all())

    def _all(self, records: Records) -> Iterator[pa.RecordBatch]:
        """Yield what every record adds and takes away."""
        for batch, _ in records:
            yield from self._decoded(batch)

    def _decoded(self, raw: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that records add, and those that they take away."""
        if self.statement.envelope == "materialize":
            yield self._updates(raw)
            return
        envelope = "debezium" if self.statement.envelope == "debezium" else "none"
        made = decode_of(self._source(envelope), [TableColumn(c) for c in self.schema])(raw)
        codes = made.column(made.num_columns - 2)
        if codes.null_count < len(codes):
            raise _foreign(pc.drop_null(made.column(made.num_columns - 1))[0].as_py())
        width = len(self.schema)
        rows = made.columns[_PLACES : _PLACES + width]
        if envelope == "none":
            yield _delta(rows, np.ones(raw.num_rows, np.int64))
            return
        old = made.columns[_PLACES + width : _PLACES + 2 * width]
        has_old, has_new = made.columns[_PLACES + 2 * width : _PLACES + 2 * width + 2]
        yield _delta([c.filter(has_new) for c in rows], np.ones(has_new.true_count, np.int64))
        yield _delta([c.filter(has_old) for c in old], -np.ones(has_old.true_count, np.int64))

    def _updates(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the updates in CDCv2 messages; others tell of progress."""
        row = Record(tuple((c.name, c.type) for c in self.schema))
        update = Record((("data", row), ("time", BIGINT), ("diff", BIGINT)))
        kind = Array(update)
        fields = [Field("array", kind, arrow_type(kind), nullable=True)]
        found = decoder_of(self.statement.format, fields, dict(self.statement.options)).decode(
            raw.column("value")
        )
        if found.faults is not None and found.faults.null_count < len(found.faults):
            raise _foreign(pc.drop_null(found.faults)[0].as_py())
        data, _, diff = found.columns[0].flatten().flatten()
        return _delta(data.flatten(), diff.to_numpy(zero_copy_only=False))

    def _source(self, envelope: str) -> CreateSource:
        """Return the statement of a source that reads the topic."""
        made = (ColumnDefinition(c.name, c.type, c.nullable) for c in self.schema)
        own = self.statement
        return CreateSource(
            own.name, ColumnList(tuple(made)), own.connection, value_format=own.format,
            envelope=SourceEnvelope(envelope), options=own.options,
        )  # fmt: skip


_RAW_TYPES: Final[dict[str, pa.DataType]] = {
    "partition": pa.int32(), "offset": pa.int64(), "key": pa.binary(), "value": pa.binary(),
}  # fmt: skip


def _checked(records: Records, frontier: Timestamp) -> Records:
    for batch, times in records:
        if (late := np.flatnonzero(times >= int(frontier))).size:
            at = int(late[0])
            offset, part = batch.column("offset")[at], batch.column("partition")[at]
            why = f"offset {offset} of partition {part} is of time {times[at]}"
            why += f"; the sink has written times before {frontier} alone"
            raise _foreign(why)
        yield batch, times


def _latest(kept: pl.DataFrame | None, new: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the last record of each key; a key may have moved to another partition."""
    frame = pl.concat([*([] if kept is None else [kept]), *new])
    ordered = frame.sort(["time", "offset"], maintain_order=True)
    return ordered.unique("key", keep="last", maintain_order=True)


def _delta(columns: Sequence[pa.Array], diff: NDArray[np.int64]) -> pa.RecordBatch:
    return deltas.build(columns, np.zeros(len(diff), np.int64), diff)


def _foreign(why: str) -> Stop:
    message = "the topic of the sink has something else in it than the sink wrote"
    hint = "drop the sink and create it with another topic"
    return Stop(SinkRegressed(message, detail=why, hint=hint))
