"""What a table refuses: NULL where it may not be, text too long, a key that is there already.

Checked on the rows a statement adds, before anything is written, against everything that
is durable: the runs of the table's collection, the writes that are pending, and the
statement itself. For each key that the statement adds a row to::

    rows stored + rows pending + rows added − rows taken away  ≤  1

so an UPDATE may swap two keys, and an INSERT that repeats one is refused whole.

Cost: a probe of the keys written, O(n log S), never a scan.

Tests: tests/engine/test_constraints.py.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.cache import process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout, diff_of, time_of
from reclock.arrangement.probe import probe
from reclock.dataflow.graph import collection_of
from reclock.dataflow.values import to_python
from reclock.errors import ConstraintViolation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.run import Run
    from reclock.catalog.item import Table
    from reclock.engine.timeline import TimelineState


def check_not_null(table: Table, columns: Sequence[pa.Array]) -> None:
    """Refuse NULL in the rows that a statement adds."""
    for defined, values in zip(table.schema, columns, strict=True):
        if not defined.nullable and values.null_count:
            message = (
                f'null value in column "{defined.name}" of relation "{table.name}" '
                "violates not-null constraint"
            )
            at = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            row = [to_python(c.slice(at, 1), d.type)[0]
                   for d, c in zip(table.schema, columns, strict=True)]  # fmt: skip
            shown = ", ".join("null" if value is None else str(value) for value in row)
            detail = f"failing row contains ({shown:.200})"
            hint = "give a value, or a DEFAULT when the table is created"
            error = ConstraintViolation(message, detail=detail, hint=hint, code="23502")
            error.row, error.column = at, defined.name
            raise error


def fitted(table: Table, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the columns with text of at most the declared length: only blanks are cut off."""
    made = list(columns)
    for at, (defined, values) in enumerate(zip(table.columns, columns, strict=True)):
        if defined.length is None:
            continue
        longer = pc.greater(pc.utf8_length(values), defined.length)
        if not pc.any(longer).as_py():
            continue
        beyond = pc.utf8_rtrim(pc.utf8_slice_codeunits(values, defined.length), " ")
        lost = pc.fill_null(pc.greater(pc.utf8_length(beyond), 0), fill_value=False)
        if pc.any(lost).as_py():
            raise _too_long(table, at, values, int(np.flatnonzero(lost)[0]))
        made[at] = pc.utf8_slice_codeunits(values, 0, defined.length)
    return made


def _too_long(table: Table, at: int, values: pa.Array, row: int) -> ConstraintViolation:
    column = table.columns[at]
    text = values[row].as_py()
    message = f"value too long for type {column.declared}"
    detail = f'column "{column.column.name}" of relation "{table.name}": '
    detail += f"{len(text)} characters, {text!r:.100}"
    hint = f"cut it with ::varchar({column.length}), or declare the column as text"
    error = ConstraintViolation(message, detail=detail, hint=hint, code="22001")
    error.row, error.column = row, column.column.name
    return error


def check_key(
    table: Table,
    state: TimelineState | None,
    updates: pa.RecordBatch,
    added: Sequence[pa.Array],
    own: Mapping[tuple[object, ...], int] | None = None,
) -> None:
    """Refuse a key that would be there twice.

    ``updates`` are arranged by the key; ``added`` are the rows as they were given. ``own`` are rows
    that count too, by their keys; without a ``state`` nothing is stored.
    """
    if not table.checks_key or updates.num_rows == 0:
        return
    net = net_keys(table, updates)
    net = net.filter(pa.array(diff_of(net) > 0))
    keys = net.select(range(1 + len(table.key)))
    counts = diff_of(net).copy()
    if state is not None:
        stored = state.traces[collection_of(table.id)].sources
        pending = [
            process_cache().open(state.segments, entry.run, table.keying.layout)
            for entry in state.wal.of_table(table.id)
        ]
        found = probe(table.keying.layout, [*stored, *pending], keys)
        np.add.at(counts, found.probe, diff_of(found.updates))
    if own:
        counts += np.array([own.get(key, 0) for key in key_values(keys)], np.int64)
    twice = np.flatnonzero(counts > 1)
    if len(twice):
        raise _duplicate(table, keys.slice(int(twice[0]), 1), added)


def check_staged(
    table: Table, updates: pa.RecordBatch, before: Sequence[Run], added: Sequence[pa.Array]
) -> None:
    """Refuse a key that an earlier part of the same write adds."""
    if not table.checks_key or not before:
        return
    keys = net_keys(table, updates).select(range(1 + len(table.key)))
    found = probe(table.keying.layout, before, keys).probe
    if len(found):
        raise _duplicate(table, keys.slice(int(found.min()), 1), added)


def net_keys(table: Table, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return how often each key comes, net of how often it goes."""
    layout = Layout(table.keying.layout.key, ())
    return consolidate(layout, _keys_only(layout, updates))


def key_values(keys: pa.RecordBatch) -> list[tuple[object, ...]]:
    """Return the values of keys, which stand after their hash."""
    return list(zip(*(column.to_pylist() for column in keys.columns[1:]), strict=True))


def _keys_only(layout: Layout, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return the updates without their values, all at one time."""
    width = 1 + len(layout.key)
    time = pa.array(np.zeros(len(time_of(updates)), np.int64))
    columns = [*updates.columns[:width], time, updates.columns[-1]]
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema)


def _duplicate(table: Table, key: pa.RecordBatch, added: Sequence[pa.Array]) -> ConstraintViolation:
    columns = [table.schema[i] for i in table.key]
    values = [to_python(key.column(n + 1), c.type)[0] for n, c in enumerate(columns)]
    names = ", ".join(c.name for c in columns)
    shown = ", ".join(str(value) for value in values)
    message = f'duplicate key value violates the primary key of "{table.name}"'
    detail = f"key ({names})=({shown:.200}) already exists"
    hint = "use UPDATE to change the row that is there"
    error = ConstraintViolation(message, detail=detail, hint=hint, code="23505")
    if added:
        same = [pc.equal(added[i], key.column(n + 1)[0]) for n, i in enumerate(table.key)]
        rows = np.flatnonzero(reduce(pc.and_, same))
        error.row = int(rows[-1]) if len(rows) else None
    error.column = columns[0].name
    return error
