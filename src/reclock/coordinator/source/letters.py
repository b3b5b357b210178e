"""The dead letters of a source: records that were skipped, kept beside its rows.

Definition. A source with ``on_error = 'skip'`` has a collection of letters beside its own
(``dataflow.graph.letters_of``)::

    number      1, 2, 3, … in the order in which records were skipped
    timestamp   when: the time that the record is bound to
    part, offset, key, value, code, reason          (``connectors.letters``)

The tick that binds a record writes its letter, in the same append, so a letter and the rows of
its time come together or not at all, and a restarted process skips the same records at the same
times (P2). Letters have the history of their source.

Bounded (P5): of each source the last ``MOST_LETTERS`` stay, and of them as many of the last as have
``MOST_BYTES`` of keys and values; one at least. Numbers go on, so the last one says how many were
ever skipped, whatever stayed: nothing goes unsaid (P9).

Cost: nothing in ticks that skip nothing; else what is kept is read once.
Tests: tests/coordinator/source/test_letters.py; at random: test_skip_walk.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.layout import time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of, letters_of
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT, BYTEA, TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.coordinator.source.staging import Taken
    from reclock.coordinator.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

MOST_LETTERS: Final = 10_000
MOST_BYTES: Final = 16 << 20
"""How many letters of a source stay, and how long their keys and values are together."""

SCHEMA: Final = Schema(
    (
        Column("number", BIGINT, nullable=False),
        Column("timestamp", BIGINT, nullable=False),
        Column("part", TEXT, nullable=False),
        Column("offset", BIGINT, nullable=False),
        Column("key", BYTEA),
        Column("value", BYTEA),
        Column("code", TEXT, nullable=False),
        Column("reason", TEXT, nullable=False),
    )
)
KEY: Final = (0,)
_NUMBER, _KEY, _VALUE = 0, 4, 5


def letters_at(state: TimelineState, item: ObjectId, as_of: Timestamp) -> pa.Table:
    """Return the letters of a source at a time, by their numbers: the columns of ``SCHEMA``.

    There are none before the source began to skip.
    """
    name = collection_of(letters_of(item))
    arrangement = state.shape.graph.arrangements[name]
    names, trace = SCHEMA.names, state.traces[name]
    begun = trace.description.since.less_equal(as_of)
    found = [
        pa.RecordBatch.from_arrays(arrangement.keying.columns(batch), names=names)
        for batch in (trace.snapshot(as_of) if begun else ())
    ]
    fields = [pa.field(n, kind) for n, kind in zip(names, arrangement.keying.types, strict=True)]
    return pa.Table.from_batches(found, pa.schema(fields)).sort_by("number")


def skipped(state: TimelineState, item: ObjectId, as_of: Timestamp) -> int:
    """Return how many records of a source were ever skipped, up to a time."""
    numbers = letters_at(state, item, as_of).column(_NUMBER)
    return int(numbers[-1].as_py()) if len(numbers) else 0


def letter_changes(
    state: TimelineState, taken: Mapping[ObjectId, Taken]
) -> dict[ObjectId, pa.RecordBatch]:
    """Return how the letters of sources change by what a tick takes."""
    return {
        letters_of(item): recorded(state, item, some.letters)
        for item, some in taken.items()
        if some.letters is not None
    }


def recorded(state: TimelineState, item: ObjectId, fresh: pa.RecordBatch) -> pa.RecordBatch:
    """Return how letters change when some come: a delta of ``connectors.letters``."""
    before = letters_at(state, item, state.upper.back()).combine_chunks()
    last = int(before.column(_NUMBER)[-1].as_py()) if before.num_rows else 0
    order = np.lexsort(
        (fresh.column(1).to_numpy(), fresh.column(0).to_numpy(zero_copy_only=False), time_of(fresh))
    )
    fresh = fresh.take(pa.array(order))
    numbers = pa.array(last + 1 + np.arange(fresh.num_rows), pa.int64())
    part, offset, *rest, time, _ = fresh.columns
    new = pa.Table.from_arrays([numbers, time, part, offset, *rest], schema=before.schema)
    first = _first_kept(pa.concat_tables([before, new]))
    gone = before.filter(pa.array(before.column(_NUMBER).to_numpy() < first))
    come = new.filter(pa.array(new.column(_NUMBER).to_numpy() >= first))
    end = int(time_of(fresh)[-1])
    ones = np.ones(come.num_rows, np.int64)
    return deltas.union(
        [
            deltas.build(_columns(come), come.column(1).to_numpy(), ones),
            deltas.build(
                _columns(gone), np.full(gone.num_rows, end), np.full(gone.num_rows, -1, np.int64)
            ),
        ]
    )


def _first_kept(letters: pa.Table) -> int:
    """Return the number of the first letter that stays."""
    numbers = letters.column(_NUMBER).to_numpy()
    sizes = np.zeros(len(numbers), np.int64)
    for at in (_KEY, _VALUE):
        lengths = pc.binary_length(letters.column(at))
        sizes += lengths.fill_null(0).to_numpy().astype(np.int64)
    behind = np.cumsum(sizes[::-1])[::-1]  # of it and all after it
    fits = (behind <= MOST_BYTES) & (numbers > numbers[-1] - MOST_LETTERS)
    fits[-1] = True
    return int(numbers[np.flatnonzero(fits)[0]])


def _columns(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.columns]
