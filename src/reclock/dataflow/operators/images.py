"""The envelope DEBEZIUM: changes of a table, with its rows before and after, as rows.

Rule. By operation: ``c`` and ``r`` bring the row after; ``u`` puts it in the place of the row
before; ``d`` takes the row before away. A record without a value (no row, no operation, no
fault) follows a delete, and says nothing.

* With a key, records become those of the envelope UPSERT: the row after is the value of its
  key, a delete is a tombstone. The row before is needed for nothing but the key, and that may
  be in the columns of the row after too. An update that changes the key is a tombstone of the
  old one as well.
* Without, they become changes: +row after, −row before. A row before that is missing, and
  needed, makes the record an error row.

A record with an operation that is none of these, or without the row after that it needs, is a
fault. Linear: no state. Cost: the change. Keeps P9.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import canonical
from reclock.arrangement.row import rows_equal
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import DEBEZIUM, UPSERT, envelope_columns, input_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

INVALID: Final = "22000"
OPERATIONS: Final = pa.array(["c", "r", "u", "d"])
CREATE, READ, UPDATE, DELETE = range(4)

NO_BEFORE: Final = (
    "without the row before: declare a PRIMARY KEY or set the table's REPLICA IDENTITY FULL"
)


class _Judged(NamedTuple):
    """What records are: operation (−1: none of them), the rows they have, and their faults."""

    operation: npt.NDArray[np.int64]
    before: Mask
    after: Mask
    silent: Mask
    code: pa.Array
    message: pa.Array

    @property
    def failed(self) -> Mask:
        return _mask(pc.is_valid(self.code))


@dataclass(frozen=True)
class Images:
    """Changes of rows of these types, with a key or (empty) without."""

    row: deltas.Types
    key: tuple[int, ...]

    @property
    def types(self) -> deltas.Types:
        """With a key, records of UPSERT; without, rows."""
        return input_types(UPSERT, self.row) if self.key else self.row

    def step(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """Return the changes, and the error rows if there are any."""
        columns = envelope_columns(DEBEZIUM, self.row, records)
        judged = self._judged(columns)
        width = len(self.row)
        after, before = records.columns[:width], records.columns[width : 2 * width]
        times = records.columns[-2:]
        if self.key:
            return self._keyed(judged, after, before, columns["order"], times), None
        return _changes(judged, after, before, times)

    def _judged(self, columns: Mapping[str, pa.Array]) -> _Judged:
        op, code, message = columns["op"], columns["code"], columns["message"]
        found = pc.fill_null(pc.index_in(op, value_set=OPERATIONS), -1)
        operation = found.to_numpy(zero_copy_only=False).astype(np.int64)
        before, after = (
            _mask(pc.fill_null(columns[name], False)) for name in ("has_before", "has_after")
        )
        good = _mask(pc.is_null(code))
        silent = good & _mask(pc.is_null(op)) & ~before & ~after
        unknown = good & ~silent & (operation < 0)
        no_after = good & ~after & (operation >= CREATE) & (operation <= UPDATE)
        no_before = good & ~before & (operation >= UPDATE) & ~no_after & (not self.key)
        wrong = unknown | no_after | no_before
        if wrong.any():
            name = pc.if_else(
                pc.is_valid(op), pc.binary_join_element_wise('"', op, '"', ""), "NULL"
            )
            text = pc.if_else(
                pa.array(unknown),
                pc.binary_join_element_wise("unknown operation", name, " "),
                pc.binary_join_element_wise(
                    "operation",
                    name,
                    pc.if_else(pa.array(no_after), "without the row after", NO_BEFORE),
                    " ",
                ),
            )
            code = pc.if_else(pa.array(wrong), INVALID, code)
            message = pc.if_else(pa.array(wrong), text, message)
        return _Judged(operation, before, after, silent, code, message)

    def _keyed(
        self,
        judged: _Judged,
        after: Sequence[pa.Array],
        before: Sequence[pa.Array],
        order: pa.Array,
        times: Sequence[pa.Array],
    ) -> pa.RecordBatch:
        """Return the changes as records of UPSERT."""
        delete = judged.operation == DELETE
        known = judged.before.copy()
        for i in self.key:
            known &= _mask(pc.is_valid(before[i]))
        rows = list(after)
        other = known & (delete | ~judged.after)
        if other.any():
            size = len(order)
            at = pa.array(np.where(other, size, 0) + np.arange(size))
            for i in self.key:
                rows[i] = pa.concat_arrays([after[i], before[i]]).take(at)
        said = [order, pa.array(delete), judged.code, judged.message]
        records = deltas.build([*rows, *said], *times)
        if judged.silent.any():
            records = records.filter(pa.array(~judged.silent))
        updated = known & judged.after & (judged.operation == UPDATE) & ~judged.failed
        at = pa.array(np.flatnonzero(updated))
        moved = at.filter(pa.array(self._differ(before, after, at)))
        if not len(moved):
            return records
        nulls = pa.nulls(len(moved), pa.string())
        gone = deltas.build(
            [
                *(column.take(moved) for column in (*before, order)),
                pa.array(np.ones(len(moved), np.bool_)),
                nulls,
                nulls,
            ],
            *(column.take(moved) for column in times),
        )
        return deltas.union([gone, records])

    def _differ(self, before: Sequence[pa.Array], after: Sequence[pa.Array], at: pa.Array) -> Mask:
        """Return which of some records have another key after than before."""
        one, other = ([canonical(rows[i].take(at)) for i in self.key] for rows in (before, after))
        return ~rows_equal(one, other)


def _changes(
    judged: _Judged,
    after: Sequence[pa.Array],
    before: Sequence[pa.Array],
    times: Sequence[pa.Array],
) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the changes as rows that come and go, and the error rows."""
    failed = judged.failed
    good = ~failed & ~judged.silent
    brings = pa.array(good & (judged.operation <= UPDATE))
    takes = pa.array(good & (judged.operation >= UPDATE))
    come = deltas.build(after, *times).filter(brings)
    go = deltas.negate(deltas.build(before, *times).filter(takes))
    errors = None
    if failed.any():
        errors = deltas.build([judged.code, judged.message], *times).filter(pa.array(failed))
    return deltas.union([come, go]), errors


def _mask(values: pa.Array) -> Mask:
    made: Mask = values.to_numpy(zero_copy_only=False)
    return made
