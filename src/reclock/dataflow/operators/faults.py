"""Split records that could not be decoded from rows: the envelope NONE.

Rule. The last two user columns are (code, message): an update whose code is NULL is a row,
any other an error row of that code and message, at its time and with its diff. Linear: it
needs no state. Cost: nothing but the columns' references when no update has a code.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from reclock.dataflow import delta as deltas

if TYPE_CHECKING:
    import pyarrow as pa


def parted(delta: pa.RecordBatch, width: int) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the rows, of the first ``width`` columns, and the error rows if there are any."""
    *_, code, _message, _time, _diff = delta.columns
    rows = deltas.build(delta.columns[:width], *delta.columns[-2:])
    if code.null_count == len(code):
        return rows, None
    failed = pc.is_valid(code)
    return rows.filter(pc.invert(failed)), error_rows(delta.filter(failed))


def error_rows(delta: pa.RecordBatch) -> pa.RecordBatch:
    """Return the last two user columns, code and message, as error rows."""
    return deltas.build(delta.columns[-4:-2], *delta.columns[-2:])
