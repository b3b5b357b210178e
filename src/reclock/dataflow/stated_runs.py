"""Statements of CDCv2 in runs: as tasks stage them.

Definition. A task that reads records of the envelope ``materialize`` writes two runs::

    updates   the columns of a row, and the diff that is stated, at the time that is stated;
              each once, divided as the collection of the source is
    summary   for each time of the piece: how many updates were read, and how many are distinct;
              and, word for word, what is no update: progress and faults, with their places

The driver reads summaries alone: progress says which times there are, the numbers say which of
them may be whole. What closes times reads the updates (``closing``).

Cost: vectorised over the records of a piece. Tests: tests/dataflow/test_stated_runs.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import by_hash, time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import MATERIALIZE, envelope_fields, input_types
from reclock.dataflow.keying import Keying

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from reclock.arrangement.layout import Int64s

_NUMBERS: Final = 3
"""Of the columns of a summary: its order, of what comes after numbers and places."""

_PLACES: Final = 2
"""The part and the offset of a record."""

_SAID: Final = ("lower", "upper", "counts", "code", "message")

SUMMARY: Final = Keying(
    (
        pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.int64(),
        pa.int64(), pa.int64(), pa.string(), pa.string(), pa.string(),
    ),
    (0,),
)  # fmt: skip
"""Its order; time, updates that were read, distinct ones; part, offset, and what is said there."""


@dataclass(frozen=True)
class Summary:
    """What the driver knows of a piece: times in their order, and statements with their places."""

    times: Int64s
    rows: Int64s
    updates: Int64s
    said: pa.RecordBatch
    """Statements that are no updates, as they were read."""
    places: tuple[pa.Array, pa.Array]
    """Their parts and offsets."""

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], row: deltas.Types) -> Self:
        """Return what is in the run of a summary, about rows of these types."""
        whole = deltas.union([SUMMARY.restore(batch) for batch in batches])
        whole = whole.take(pa.array(np.argsort(whole.column(0).to_numpy())))
        counts = whole.column(1).is_valid()
        numbers = whole.filter(counts)
        times, rows, updates = (
            numbers.column(1 + at).to_numpy(zero_copy_only=False).astype(np.int64)
            for at in range(_NUMBERS)
        )
        others = whole.filter(pc.invert(counts))
        said = dict(zip(_SAID, others.columns[1 + _NUMBERS + _PLACES :], strict=False))
        fields = envelope_fields(MATERIALIZE, row)
        size = others.num_rows
        columns = [
            *(pa.nulls(size, kind) for kind in row),
            *(said[f.name] if f.name in said else pa.nulls(size, f.type) for f in fields),
        ]
        names = [f"c{at}" for at in range(len(columns))]
        made = pa.RecordBatch.from_arrays(columns, names=names)
        part, offset = others.columns[1 + _NUMBERS : 1 + _NUMBERS + _PLACES]
        return cls(times, rows, updates, made, (part, offset))


@dataclass(frozen=True)
class StatedRuns:
    """How updates of a source are staged whose rows lie as ``rows`` says."""

    rows: Keying

    @cached_property
    def keying(self) -> Keying:
        """How staged updates lie: the last column is the diff that is stated."""
        return Keying((*self.rows.types, pa.int64()), self.rows.key)

    def updates(self, row: Sequence[pa.Array], diff: pa.Array, times: Int64s) -> pa.RecordBatch:
        """Return updates as they lie, each once, sorted."""
        ones = np.ones(len(times), np.int64)
        return self.once(self.keying.arrange(deltas.build([*row, diff], times, ones)))

    def once(self, updates: pa.RecordBatch) -> pa.RecordBatch:
        """Return updates that lie so, each once, sorted."""
        made = consolidate(self.keying.layout, updates)
        ones = pa.array(np.ones(made.num_rows, np.int64))
        return pa.RecordBatch.from_arrays([*made.columns[:-1], ones], schema=made.schema)

    def staged(self, records: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return updates and a summary of records with places, as updates of arrangements."""
        width = len(self.rows.types)
        names = [f"c{at}" for at in range(_PLACES + len(input_types(MATERIALIZE, self.rows.types)))]
        whole = pa.concat_batches(
            [pa.RecordBatch.from_arrays(b.columns[: len(names)], names=names) for b in records]
        )
        fields = envelope_fields(MATERIALIZE, self.rows.types)
        said = {f.name: c for f, c in zip(fields, whole.columns[_PLACES + width :], strict=True)}
        is_update = pc.and_(said["code"].is_null(), said["lower"].is_null())
        stated = whole.filter(is_update).columns[_PLACES:]
        times = stated[width].to_numpy(zero_copy_only=False).astype(np.int64)
        updates = self.updates(stated[:width], stated[width + 1], times)
        return updates, by_hash(
            SUMMARY.arrange(_summary(times, time_of(updates), whole, said, is_update))
        )


def _summary(
    read: Int64s,
    distinct: Int64s,
    whole: pa.RecordBatch,
    said: dict[str, pa.Array],
    is_update: pa.Array,
) -> pa.RecordBatch:
    times, rows = np.unique(read, return_counts=True)
    updates = np.unique(distinct, return_counts=True)[1]
    others = pa.array(np.flatnonzero(~is_update.to_numpy(zero_copy_only=False)))
    size, rest = len(times), len(others)
    numbers = (times, rows.astype(np.int64), updates.astype(np.int64))
    places = (whole.column(0).cast(pa.string()), whole.column(1))
    columns = [
        pa.array(np.arange(size + rest)),
        *(pa.concat_arrays([pa.array(n), pa.nulls(rest, pa.int64())]) for n in numbers),
        *(
            pa.concat_arrays([pa.nulls(size, c.type), c.take(others)])
            for c in (*places, *(said[name] for name in _SAID))
        ),
    ]
    made = size + rest
    return deltas.build(columns, np.zeros(made, np.int64), np.ones(made, np.int64))
