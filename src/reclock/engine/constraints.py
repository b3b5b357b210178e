"""Constraints of tables: NOT NULL, CHECK, the length of text, unique keys.

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
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.cache import process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout, diff_of, time_of
from reclock.arrangement.probe import probe
from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import failure
from reclock.dataflow.evaluate import Evaluated, RowRequest
from reclock.dataflow.graph import collection_of
from reclock.dataflow.local import evaluated, is_local
from reclock.dataflow.values import to_python
from reclock.errors import ConstraintViolation
from reclock.rows.copy_text import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.run import Run
    from reclock.catalog.item import Check, Table
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState


_SHOWN: Final = 64
"""So many characters of a value are shown in a message."""


def check_not_null(table: Table, columns: Sequence[pa.Array]) -> None:
    """Refuse NULL in the rows that a statement adds."""
    for defined, values in zip(table.schema, columns, strict=True):
        if not defined.nullable and values.null_count:
            message = (
                f'null value in column "{defined.name}" of relation "{table.name}" '
                "violates not-null constraint"
            )
            at = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            detail = f"Failing row contains ({shown_row(table, columns, at)})."
            hint = "give a value, or a DEFAULT when the table is created"
            error = ConstraintViolation(message, detail=detail, hint=hint, code="23502")
            error.row, error.column, error.table = at, defined.name, table.name
            raise error


def fitted(table: Table, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the columns with text of at most the declared length: only blanks are cut off."""
    made = list(columns)
    for at, (defined, given) in enumerate(zip(table.columns, columns, strict=True)):
        if defined.length is None:
            continue
        values = pc.utf8_rtrim(given, " ") if defined.fixed else given
        longer = pc.greater(pc.utf8_length(values), defined.length)
        if not defined.fixed and not pc.any(longer).as_py():
            continue
        beyond = pc.utf8_rtrim(pc.utf8_slice_codeunits(values, defined.length), " ")
        lost = pc.fill_null(pc.greater(pc.utf8_length(beyond), 0), fill_value=False)
        if pc.any(lost).as_py():
            raise _too_long(table, at, given, int(np.flatnonzero(lost)[0]))
        made[at] = pc.utf8_slice_codeunits(values, 0, defined.length)
    return made


def check_conditions(core: Core, table: Table, columns: Sequence[pa.Array]) -> None:
    """Refuse rows for which a CHECK is false; NULL is not false.

    Cost: a pass over the rows by Arrow, or by Spark for what needs it (``dataflow.local``).
    """
    if not table.checks or not len(columns[0]):
        return
    size = len(columns[0])
    rows = deltas.build(columns, np.zeros(size, np.int64), np.ones(size, np.int64))
    conditions = tuple(check.condition for check in table.checks)
    if all(map(is_local, conditions)):
        found = evaluated(conditions, rows)
    else:
        (answer,) = core.engine.evaluate([RowRequest(0, rows, conditions)])
        assert isinstance(answer, Evaluated)
        found = answer
    broken: tuple[int, int] | None = None
    for nth, (value, error) in enumerate(zip(found.values, found.errors, strict=True)):
        failed = None if error is None else np.flatnonzero(error.is_valid())
        wrong = np.flatnonzero(pc.invert(pc.fill_null(value, True)))
        if error is not None and failed is not None and len(failed):
            code, _, message = error[int(failed[0])].as_py().partition("|")
            raise failure(code, message, f'in check constraint "{table.checks[nth].name}"')
        if len(wrong):
            broken = min(filter(None, [broken, (int(wrong[0]), nth)]))
    if broken is not None:
        raise _not_so(table, table.checks[broken[1]], columns, broken[0])


def _not_so(
    table: Table, check: Check, columns: Sequence[pa.Array], row: int
) -> ConstraintViolation:
    name = check.name
    message = f'new row for relation "{table.name}" violates check constraint "{name}"'
    detail = f"Failing row contains ({shown_row(table, columns, row)})."
    hint = f"the condition is {check.text}"
    error = ConstraintViolation(message, detail=detail, hint=hint, code="23514")
    error.row, error.table, error.constraint = row, table.name, name
    return error


def shown_row(table: Table, columns: Sequence[pa.Array], row: int) -> str:
    """Return the values of a row as they are shown in a message."""
    shown = []
    for values, defined in zip(columns, table.schema, strict=True):
        value = to_python(values.slice(row, 1), defined.type)[0]
        text = "null" if value is None else text_of(value, defined.type)
        shown.append(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
    return ", ".join(shown)


def _too_long(table: Table, at: int, values: pa.Array, row: int) -> ConstraintViolation:
    column = table.columns[at]
    text = values[row].as_py()
    message = f"value too long for type {column.declared}"
    detail = f'column "{column.column.name}" of relation "{table.name}": '
    detail += f"{len(text)} characters, {text!r:.100}"
    kind = "char" if column.fixed else "varchar"
    hint = f"cut it with ::{kind}({column.length}), or declare the column as text"
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
