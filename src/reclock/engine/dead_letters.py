"""The dead letters of a source: records that were skipped, kept apart from its rows.

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

What tasks have skipped is in runs (``dataflow.stage``), of which only the last letters are read.

Cost: nothing in ticks that skip nothing; else what is kept is read once.
Tests: tests/ingest/test_letters.py; at random: test_skip_walk.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import time_of
from reclock.connectors.letters import SCHEMA as LETTERS
from reclock.connectors.letters import first_kept, lengths
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of, letters_of
from reclock.dataflow.stage import letters_keying
from reclock.engine.letter_columns import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.engine.taken import Skipped, Taken
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

MOST_LETTERS: Final = 10_000
MOST_BYTES: Final = 16 << 20
"""How many letters of a source stay, and how long their keys and values are together."""

_NUMBER, _TIME, _KEY, _VALUE = 0, 1, 4, 5


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
        letters_of(item): recorded(state, item, some.letters, some.skipped)
        for item, some in taken.items()
        if some.letters is not None or some.skipped
    }


def recorded(
    state: TimelineState,
    item: ObjectId,
    fresh: pa.RecordBatch | None,
    staged: Sequence[Skipped] = (),
) -> pa.RecordBatch:
    """Return how letters change when some come: a delta of ``connectors.letters``, or in runs."""
    before = letters_at(state, item, state.upper.back()).combine_chunks()
    last = int(before.column(_NUMBER)[-1].as_py()) if before.num_rows else 0
    new, floor = _numbered(state, fresh, staged, last, before.schema)
    found = pa.concat_tables([before, new])
    numbers = found.column(_NUMBER).to_numpy()
    kept = first_kept(found.column(_KEY), found.column(_VALUE), MOST_LETTERS, MOST_BYTES)
    first = max(int(numbers[kept]), floor + 1)
    gone = before.filter(pa.array(before.column(_NUMBER).to_numpy() < first))
    come = new.filter(pa.array(new.column(_NUMBER).to_numpy() >= first))
    end = int(new.column(_TIME)[-1].as_py())
    ones = np.ones(come.num_rows, np.int64)
    return deltas.union(
        [
            deltas.build(_columns(come), come.column(_TIME).to_numpy(), ones),
            deltas.build(
                _columns(gone), np.full(gone.num_rows, end), np.full(gone.num_rows, -1, np.int64)
            ),
        ]
    )


def _numbered(
    state: TimelineState,
    fresh: pa.RecordBatch | None,
    staged: Sequence[Skipped],
    last: int,
    schema: pa.Schema,
) -> tuple[pa.Table, int]:
    """Return the letters that come, by their numbers, and the last number that is left out.

    They are in the order of time, part and offset. Of those in runs only the last are read: no
    more than may stay.
    """
    own = 0 if fresh is None else fresh.num_rows
    time = np.array([some.time for some in staged], np.int64)
    part = np.array([str(some.covered.range.part) for some in staged], object)
    start = np.array([some.covered.range.start for some in staged], np.int64)
    if fresh is not None:
        time = np.concatenate([time_of(fresh), time])
        part = np.concatenate([fresh.column(0).to_numpy(zero_copy_only=False), part])
        start = np.concatenate([fresh.column(1).to_numpy(), start])
    counts = np.array([1] * own + [some.covered.skipped for some in staged], np.int64)
    order = np.lexsort((start, part, time))
    ends = np.zeros(len(order), np.int64)
    ends[order] = last + np.cumsum(counts[order])
    made = []
    if fresh is not None:
        columns = [pa.array(ends[:own]), fresh.column(-2), *fresh.columns[:-2]]
        made.append(pa.Table.from_arrays(columns, schema=schema))
    floor, room, size = 0, int(ends.max()) - MOST_LETTERS, 0
    for at in order[::-1]:
        if at < own:
            continue
        if ends[at] <= max(floor, room) or size > MOST_BYTES:
            floor = max(floor, int(ends[at]))
            break
        some, end = staged[at - own], int(ends[at])
        found = _letters_in(state, some)
        numbers = pa.array(np.arange(end - found.num_rows + 1, end + 1))
        times = pa.array(np.full(found.num_rows, some.time, np.int64))
        made.append(pa.Table.from_arrays([numbers, times, *found.columns], schema=schema))
        size += int(lengths(found.column("key"), found.column("value")).sum())
        if some.covered.kept < some.covered.skipped:
            floor = max(floor, end - some.covered.kept)
    return pa.concat_tables(made).sort_by("number"), floor


def _letters_in(state: TimelineState, some: Skipped) -> pa.Table:
    """Return the letters of a range that a task has written, in order."""
    keying, _, start, stop, _ = letters_keying(), *some.covered.range
    run = RunCache().open(state.segments, some.ref, keying.layout)
    names = LETTERS.names
    batches = [pa.RecordBatch.from_arrays(keying.columns(b), names=names) for b in run]
    found = pa.Table.from_batches(batches, LETTERS)
    here = pc.equal(found.column("part"), str(some.covered.range.part))
    inside = pc.and_(
        pc.greater_equal(found.column("offset"), start), pc.less(found.column("offset"), stop)
    )
    return found.filter(pc.and_(here, inside)).sort_by("offset")


def _columns(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.columns]
