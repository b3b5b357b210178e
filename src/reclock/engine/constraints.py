"""Constraints of tables: NOT NULL, CHECK, the length of text, the primary key and UNIQUE.

Checked on the rows a statement adds, before anything is written, against everything that
is durable: the runs of the table's collection, the writes that are pending, and the
statement itself. For each key that the statement adds a row to::

    rows stored + rows pending + rows added − rows taken away  ≤  1

so an UPDATE may swap two keys, and an INSERT that repeats one is refused whole. Stored rows are
looked up where they are arranged by the key: in the collection by the primary key, in its index by
another one. Pending rows are arranged by that when they are first asked for.

Cost: a probe of the keys written, O(n log S), never a scan of what is stored.

Tests: tests/engine/test_constraints.py.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.cache import process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.file import Mapped
from reclock.arrangement.layout import Layout, diff_of, time_of
from reclock.arrangement.probe import probe
from reclock.arrangement.run import Run
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.stream import concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import failure
from reclock.dataflow.evaluate import Evaluated, RowRequest
from reclock.dataflow.graph import collection_of
from reclock.dataflow.keying import Keying
from reclock.dataflow.local import evaluated, is_local
from reclock.dataflow.values import to_python
from reclock.errors import ConstraintViolation
from reclock.rows.copy_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reclock.arrangement.family import Sorted
    from reclock.catalog.item import Check, Table
    from reclock.catalog.unique import UniqueKey
    from reclock.engine.engine import Engine
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


def check_conditions(engine: Engine, table: Table, columns: Sequence[pa.Array]) -> None:
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
        (answer,) = engine.evaluate([RowRequest(0, rows, conditions)])
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


def check_keys(  # noqa: PLR0917 - a table, and what is written to it
    table: Table,
    keys: Sequence[UniqueKey],
    state: TimelineState | None,
    updates: pa.RecordBatch,
    added: Sequence[pa.Array],
    own: Mapping[UniqueKey, Mapping[tuple[object, ...], int]] | None = None,
) -> None:
    """Refuse a key that would be there twice.

    ``updates`` are arranged as the table is; ``added`` are the rows as they were given. ``own`` are
    rows that count too, by their keys; without a ``state`` nothing is stored.
    """
    for key in keys if updates.num_rows else ():
        net = net_keys(table, key, updates)
        net = net.filter(pa.array(diff_of(net) > 0))
        asked = net.select(range(1 + len(key.columns)))
        counts = diff_of(net).copy()
        if state is not None and net.num_rows:
            for layout, runs in _there(table, key, state):
                found = probe(layout, runs, asked)
                np.add.at(counts, found.probe, diff_of(found.updates))
        if own and own.get(key):
            counts += np.array([own[key].get(k, 0) for k in key_values(asked)], np.int64)
        twice = np.flatnonzero(counts > 1)
        if len(twice):
            raise _duplicate(table, key, asked.slice(int(twice[0]), 1), added)


def _there(
    table: Table, key: UniqueKey, state: TimelineState
) -> Iterator[tuple[Layout, Sequence[Sorted]]]:
    """Yield what is durable, arranged by a key: of an index that is only being made nothing."""
    layout = table.keying.layout
    pending = [
        process_cache().open(state.segments, entry.run, layout)
        for entry in state.wal.of_table(table.id)
    ]
    if key.index is None:
        yield layout, (*state.traces[collection_of(table.id)].sources, *pending)
        return
    if key.index in state.shape.kept:
        (arranged,) = state.shape.kept[key.index]
        yield key.keying(table.keying).layout, state.traces[arranged].sources
    yield keys_only(table, key), [_by_key(table, key, run, state) for run in pending]


_rearranged: Final[WeakKeyDictionary[Run, dict[tuple[UniqueKey, Keying], Run]]] = (
    WeakKeyDictionary()
)
"""The keys of pending writes: each is asked for by all the writes after it."""


def _by_key(table: Table, key: UniqueKey, run: Run, state: TimelineState) -> Run:
    """Return which keys the updates of a run have."""
    known = _rearranged.setdefault(run, {})
    if (key, table.keying) not in known:
        batches = [net_keys(table, key, batch) for batch in run]
        layout = keys_only(table, key)
        made = consolidate(layout, concat(batches)) if batches else layout.empty()
        with SegmentWriter(state.segments, "keys", inline_limit=1 << 40) as writer:
            writer.add(key.name, layout, [made], run.ref.description)
            (ref,) = writer.finish()
        known[key, table.keying] = Run(ref, layout, lambda: Mapped(pa.py_buffer(ref.inline or b"")))
    return known[key, table.keying]


def refuse_repeated(table: Table, key: UniqueKey, columns: Sequence[pa.Array]) -> None:
    """Refuse a new key that several rows have; ``columns`` are all rows', those of the key."""
    size = len(columns[0])
    keying = Keying(tuple(table.keying.types[i] for i in key.columns), tuple(range(len(columns))))
    ones = deltas.build(columns, np.zeros(size, np.int64), np.ones(size, np.int64))
    made = consolidate(keying.layout, keying.arrange(ones))
    several = made.filter(pa.array(diff_of(made) > 1))
    if key.nulls_distinct and several.num_rows:
        several = several.filter(_all_known(several, key))
    if several.num_rows:
        message = f'could not create unique index "{key.name}"'
        detail = f"Key {key_text(table, key, several.columns[1:-2])} is duplicated."
        hint = "DELETE or change one of the rows first"
        error = ConstraintViolation(message, detail=detail, hint=hint, code="23505")
        error.table, error.constraint = table.name, key.name
        raise error


def check_staged(
    table: Table,
    key: UniqueKey,
    updates: pa.RecordBatch,
    before: Sequence[Run],
    added: Sequence[pa.Array],
) -> None:
    """Refuse a key that an earlier part of the same write adds."""
    if not before:
        return
    keys = net_keys(table, key, updates).select(range(1 + len(key.columns)))
    layout = table.keying.layout if key.index is None else keys_only(table, key)
    found = probe(layout, before, keys).probe
    if len(found):
        raise _duplicate(table, key, keys.slice(int(found.min()), 1), added)


def net_keys(table: Table, key: UniqueKey, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return how often each key comes, net of how often it goes; of rows that have it."""
    keying = key.keying(table.keying)
    if key.index is not None:
        updates = keying.arrange(table.keying.restore(updates))
    layout = keys_only(table, key)
    made = consolidate(layout, _keys_only(layout, updates))
    if not key.nulls_distinct or not any(c.null_count for c in made.columns):
        return made
    return made.filter(_all_known(made, key))


def _all_known(updates: pa.RecordBatch, key: UniqueKey) -> pa.Array:
    """Return which keys have no NULL."""
    return reduce(pc.and_, [c.is_valid() for c in updates.columns[1 : 1 + len(key.columns)]])


def keys_only(table: Table, key: UniqueKey) -> Layout:
    """Return the layout of keys without their rows."""
    return Layout(key.keying(table.keying).layout.key, ())


def key_values(keys: pa.RecordBatch) -> list[tuple[object, ...]]:
    """Return the values of keys, which stand after their hash."""
    return list(zip(*(column.to_pylist() for column in keys.columns[1:]), strict=True))


def _keys_only(layout: Layout, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return the updates without their values, all at one time."""
    width = 1 + len(layout.key)
    time = pa.array(np.zeros(len(time_of(updates)), np.int64))
    columns = [*updates.columns[:width], time, updates.columns[-1]]
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema)


def key_text(table: Table, key: UniqueKey, values: Sequence[pa.Array]) -> str:
    """Return ``(columns)=(values)`` as messages show a key; ``values`` are of one row."""
    columns = [table.schema[i] for i in key.columns]
    shown = []
    for of, value in zip(columns, values, strict=True):
        given = to_python(value.slice(0, 1), of.type)[0]
        shown.append("null" if given is None else text_of(given, of.type))
    return f"({', '.join(c.name for c in columns)})=({', '.join(shown):.200})"


def _duplicate(
    table: Table, key: UniqueKey, found: pa.RecordBatch, added: Sequence[pa.Array]
) -> ConstraintViolation:
    message = f'duplicate key value violates unique constraint "{key.name}"'
    detail = f"Key {key_text(table, key, found.columns[1:])} already exists."
    hint = "use UPDATE to change the row that is there"
    error = ConstraintViolation(message, detail=detail, hint=hint, code="23505")
    if added:
        of = zip(key.columns, found.columns[1:], strict=True)
        same = [_equal(added[i], value) for i, value in of]
        rows = np.flatnonzero(reduce(pc.and_, same))
        error.row = int(rows[-1]) if len(rows) else None
    error.table, error.constraint = table.name, key.name
    error.column = table.schema[key.columns[0]].name
    return error


def _equal(column: pa.Array, value: pa.Array) -> pa.Array:
    if value[0].is_valid:
        return pc.fill_null(pc.equal(column, value[0]), fill_value=False)
    return column.is_null()
