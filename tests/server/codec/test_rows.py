"""Rows made many at a time are, byte for byte, rows made one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.server.codec import binary, text
from reclock.server.codec.backend import CopyOutData, DataRow
from reclock.server.codec.message import frame
from reclock.server.codec.rows import copy_rows, data_rows, few_rows
from reclock.sql import types as t
from strategies.values import kinds, values_of

SIMPLE = [
    t.BOOLEAN, t.SMALLINT, t.INTEGER, t.BIGINT, t.REAL, t.DOUBLE, t.TEXT, t.BYTEA, t.DATE,
    t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL, t.JSON, t.Numeric(12, 2), t.Numeric(9, 9),
]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_many_at_a_time_is_one_by_one(data: st.DataObject) -> None:
    of = [*SIMPLE, data.draw(kinds())]
    formats = [data.draw(st.integers(0, 1)) for _ in of]
    if any(
        f and isinstance(k, t.Array) and isinstance(k.element, t.Array | t.Record)
        for f, k in zip(formats, of, strict=True)
    ):
        return  # arrays of arrays need not have a shape  # fmt: skip
    if any(f and isinstance(k, t.Record) for f, k in zip(formats, of, strict=True)):
        return
    rows = data.draw(st.integers(0, 5))
    columns = [
        from_python([data.draw(st.none() | values_of(kind)) for _ in range(rows)], kind)
        for kind in of
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(of))])
    expected = b""
    for at in range(batch.num_rows):
        values = []
        for column, kind, form in zip(columns, of, formats, strict=True):
            raw = column[at].as_py()
            write = binary.write if form else (lambda v, k: text.write(v, k).encode())
            values.append(None if raw is None else write(raw, kind))
        expected += frame(DataRow(tuple(values)))
    assert data_rows(batch, of, formats) == expected
    few = [tuple(column[at].as_py() for column in columns) for at in range(batch.num_rows)]
    assert few_rows(few, of, formats) == expected


ESCAPED = str.maketrans(
    {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)
AWKWARD = st.none() | st.text("ab\\\b\t\n\v\f\r'N\x00\x07\x0e\u00e9", max_size=4)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_lines_are_the_same_texts_escaped(data: st.DataObject) -> None:
    of = [*SIMPLE, data.draw(kinds()), t.TEXT]
    rows = data.draw(st.integers(0, 5))
    columns = [
        from_python([data.draw(st.none() | values_of(kind)) for _ in range(rows)], kind)
        for kind in of[:-1]
    ]
    columns.append(pa.array([data.draw(AWKWARD) for _ in range(rows)], pa.string()))
    batch = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(of))])
    expected = b""
    for at in range(batch.num_rows):
        raw = [column[at].as_py() for column in columns]
        texts = [
            "\\N" if v is None else text.write(v, k).translate(ESCAPED)
            for v, k in zip(raw, of, strict=True)
        ]
        expected += frame(CopyOutData("\t".join(texts).encode() + b"\n"))
    assert copy_rows(batch, of) == expected


def test_a_slice_is_only_its_rows() -> None:
    column = pa.array(list(range(10)), arrow_type(t.BIGINT))
    batch = pa.record_batch([column], ["a"]).slice(4, 2)
    assert data_rows(batch, [t.BIGINT], [0]).count(b"D\0") == 2
    assert data_rows(batch, [t.BIGINT], [1])[-1] == 5


@pytest.mark.parametrize("form", [0, 1])
def test_no_rows_are_no_bytes(form: int) -> None:
    batch = pa.record_batch([pa.array([], arrow_type(t.TEXT))], ["a"])
    assert data_rows(batch, [t.TEXT], [form]) == b""
