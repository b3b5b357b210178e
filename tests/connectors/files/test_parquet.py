"""Parquet files: rows by number, columns by name, values that do not fit as faults."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.files import parquet as parquet_module
from reclock.connectors.files.content import Measure, Stretch
from reclock.connectors.files.parquet import Parquet
from reclock.errors import SourceRegressed, SourceStopped


class Column(NamedTuple):
    name: str
    arrow: pa.DataType
    nullable: bool = True


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def read(content: Parquet, raw: bytes, start: int, stop: int) -> list[tuple[Any, ...]]:
    found = []
    for piece in content.pieces(io.BytesIO(raw), Stretch("f", start, stop)):
        piece.validate(full=True)
        assert piece.schema == content.schema
        assert set(piece.column(0).to_pylist()) <= {"f"}
        found += zip(*(column.to_pylist() for column in piece.columns[1:]), strict=True)
    return found


ID = Parquet((Column("id", pa.int64()),))


@given(
    st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=30),
    st.integers(1, 10),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(1, 8),
)
def test_any_division_has_each_row_once(
    values: list[int | None], group: int, cuts: list[int], batch: int
) -> None:
    table = pa.table({"other": pa.nulls(len(values)), "id": pa.array(values, pa.int32())})
    raw = written(table, row_group_size=group)
    assert ID.measure(io.BytesIO(raw), "f", len(raw), None) == Measure(len(values), len(raw))
    bounds = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_module, "BATCH_ROWS", batch)
        found = [row for a, b in pairwise(bounds) for row in read(ID, raw, a, b)]
    assert found == [(at, value, None) for at, value in enumerate(values)]


def test_types_come_as_they_are_declared() -> None:
    table = pa.table(
        {
            "n": pa.array([1], pa.int16()),
            "d": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "t": pa.array([1_500_000_000], pa.timestamp("ns")),
            "l": pa.array([["x", None]], pa.large_list(pa.large_string())),
            "s": pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int8()), ("b", pa.string())])),
            "diff": pa.array([7]),
        }
    )
    fields = (
        Column("diff", pa.int64()),
        Column("n", pa.int64()),
        Column("d", pa.decimal128(12, 2)),
        Column("t", pa.timestamp("us")),
        Column("l", pa.list_(pa.field("element", pa.string()))),
        Column("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    )
    content = Parquet(fields)
    at = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000)  # noqa: DTZ001 - without a zone
    row = (7, 1, Decimal("1.50"), at, ["x", None], {"a": 1, "b": None})
    assert read(content, written(table), 0, 1) == [(0, *row, None)]
    assert content.schema.names == ["part", "offset", *(f"c{n}" for n in range(6)), "fault"]


def test_values_that_do_not_fit_are_faults() -> None:
    table = pa.table({"a": ["1", "x", "3", None], "b": [1, 2, None, 4]})
    content = Parquet((Column("a", pa.int32()), Column("b", pa.int64(), nullable=False)))
    rows = read(content, written(table), 0, 4)
    assert [row[:-1] for row in rows] == [(0, 1, 1), (1, None, None), (2, None, None), (3, None, 4)]
    faults = [row[-1] for row in rows]
    assert faults[0] is None
    assert faults[1] == "column \"a\": 'x' is not a valid int32"
    assert faults[2] == 'column "b" must not be NULL'
    assert faults[3] is None


def test_columns_that_are_not_there() -> None:
    raw = written(pa.table({"a": [1], "b": [[1]]}))
    with pytest.raises(SourceStopped, match='no column "id"') as caught:
        read(ID, raw, 0, 1)
    assert "a, b" in str(caught.value.detail)
    with pytest.raises(SourceStopped, match='another column "b"') as caught:
        read(Parquet((Column("b", pa.int64()),)), raw, 0, 1)
    assert "list" in str(caught.value.detail)


def test_a_file_without_its_footer_is_waited_for() -> None:
    raw = written(pa.table({"id": [1, 2]}))
    for size in (0, 3, 4, 11, len(raw) // 2, len(raw) - 1):
        assert ID.measure(io.BytesIO(raw[:size]), "f", size, None) == Measure(0, 0)
        with pytest.raises(SourceStopped, match="not complete"):
            ID.measure_complete(io.BytesIO(raw[:size]), "f", size)
    assert ID.measure_complete(io.BytesIO(raw), "f", len(raw)).end == 2


@pytest.mark.parametrize("raw", [b"id\n1\n2\n3\n", b"PAR1 and a lot of other things PAR1"])
def test_what_is_not_parquet(raw: bytes) -> None:
    with pytest.raises(SourceStopped, match="not a Parquet file"):
        ID.measure(io.BytesIO(raw), "f", len(raw), None)


def test_a_file_does_not_grow() -> None:
    raw, longer = written(pa.table({"id": [1]})), written(pa.table({"id": [1, 2]}))
    known = ID.measure(io.BytesIO(raw), "f", len(raw), None)
    with pytest.raises(SourceRegressed, match="changed"):
        ID.measure(io.BytesIO(longer + b"  "), "f", len(longer) + 2, known)
    with pytest.raises(SourceRegressed, match="truncated"):
        read(ID, raw, 0, 2)
    with pytest.raises(SourceRegressed, match="changed"):
        read(ID, raw[:-1], 0, 1)


def test_wide_rows_come_in_small_batches() -> None:
    table = pa.table({"id": ["x" * 100_000 + str(n) for n in range(300)]})
    raw = written(table, compression="none", use_dictionary=False)
    content = Parquet((Column("id", pa.string()),))
    pieces = list(content.pieces(io.BytesIO(raw), Stretch("f", 0, 300)))
    assert sum(piece.num_rows for piece in pieces) == 300
    assert max(piece.nbytes for piece in pieces) < 9 << 20
