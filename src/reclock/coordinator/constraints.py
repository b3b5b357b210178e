"""What a table refuses: NULL where it may not be, a key that is there already.

Checked on the rows a statement adds, before anything is written, against everything that
is durable: the runs of the table's collection, the writes that are pending, and the
statement itself. For each key that the statement adds a row to::

    rows stored + rows pending + rows added − rows taken away  ≤  1

so an UPDATE may swap two keys, and an INSERT that repeats one is refused whole.

Cost: a probe of the keys written, O(n log S), never a scan.

Tests: tests/coordinator/test_constraints.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout, diff_of, time_of
from reclock.arrangement.probe import probe
from reclock.dataflow.graph import collection_of
from reclock.dataflow.values import to_python
from reclock.errors import ConstraintViolation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.coordinator.item import Table
    from reclock.coordinator.timeline import TimelineState


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
            raise ConstraintViolation(message, detail=detail, hint=hint, code="23502")


def check_key(table: Table, state: TimelineState, updates: pa.RecordBatch) -> None:
    """Refuse a key that would be there twice; ``updates`` are arranged by the key."""
    if not table.checks_key or updates.num_rows == 0:
        return
    layout = Layout(table.keying.layout.key, ())
    net = consolidate(layout, _keys_only(layout, updates))
    net = net.filter(pa.array(diff_of(net) > 0))
    keys = net.select(range(1 + len(layout.key)))
    stored = state.traces[collection_of(table.id)].runs
    pending = [
        process_cache().open(state.segments, entry.run, table.keying.layout)
        for entry in state.wal.of_table(table.id)
    ]
    found = probe(table.keying.layout, [*stored, *pending], keys)
    counts = diff_of(net).copy()
    np.add.at(counts, found.probe, diff_of(found.updates))
    twice = np.flatnonzero(counts > 1)
    if len(twice):
        raise _duplicate(table, keys.slice(int(twice[0]), 1))


def _keys_only(layout: Layout, updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return the updates without their values, all at one time."""
    width = 1 + len(layout.key)
    time = pa.array(np.zeros(len(time_of(updates)), np.int64))
    columns = [*updates.columns[:width], time, updates.columns[-1]]
    return pa.RecordBatch.from_arrays(columns, schema=layout.schema)


def _duplicate(table: Table, key: pa.RecordBatch) -> ConstraintViolation:
    columns = [table.schema[i] for i in table.key]
    values = [to_python(key.column(n + 1), c.type)[0] for n, c in enumerate(columns)]
    names = ", ".join(c.name for c in columns)
    shown = ", ".join(str(value) for value in values)
    message = f'duplicate key value violates the primary key of "{table.name}"'
    detail = f"key ({names})=({shown:.200}) already exists"
    hint = "use UPDATE to change the row that is there"
    return ConstraintViolation(message, detail=detail, hint=hint, code="23505")
