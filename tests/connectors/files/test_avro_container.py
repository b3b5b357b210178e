"""Avro's container files: records by number, resolved to the declared schema, block by block."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.files.avro_container import AvroContainer
from reclock.connectors.files.content import Measure, Stretch
from reclock.errors import SourceRegressed, SourceStopped

FIELDS = [{"name": "id", "type": "long"}, {"name": "x", "type": ["null", "string"]}]
SCHEMA = {"type": "record", "name": "row", "fields": FIELDS}
CONTENT = AvroContainer(json.dumps(SCHEMA))


def written(rows: list[Any], schema: Any = SCHEMA, **options: Any) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, **options)
    return out.getvalue()


def read(raw: bytes, start: int, stop: int, content: AvroContainer = CONTENT) -> list[Any]:
    schema = fastavro.parse_schema(json.loads(content.declared))
    found = []
    for piece in content.pieces(io.BytesIO(raw), Stretch("f", start, stop)):
        piece.validate(full=True)
        assert piece.schema == content.schema
        assert set(piece.column(0).to_pylist()) <= {"f"}
        for offset, value in zip(piece[1].to_pylist(), piece[2].to_pylist(), strict=True):
            row = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
            found.append((offset, row))
    return found


ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(-(2**63), 2**63 - 1), "x": st.none() | st.text(max_size=9)}
    ),
    max_size=20,
)


@given(
    ROWS, st.integers(16, 90), st.sampled_from(["null", "deflate"]),
    st.lists(st.integers(0, 20), max_size=4),
)  # fmt: skip
def test_any_division_has_each_record_once(
    rows: list[Any], interval: int, codec: str, cuts: list[int]
) -> None:
    raw = written(rows, sync_interval=interval, codec=codec)
    measured = CONTENT.measure_complete(io.BytesIO(raw), "f", len(raw))
    assert measured[:2] == (len(rows), len(raw))
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    found = [row for start, stop in pairwise(bounds) for row in read(raw, start, stop)]
    assert found == list(enumerate(rows))


@given(ROWS, st.integers(16, 90), st.data())
def test_a_file_that_grows_is_there_block_by_block(
    rows: list[Any], interval: int, data: st.DataObject
) -> None:
    raw = written(rows, sync_interval=interval)
    known: Measure | None = None
    for size in sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6))):
        known = CONTENT.measure(io.BytesIO(raw[:size]), "f", size, known)
        assert known.raw <= size
        assert known[:2] == CONTENT.measure(io.BytesIO(raw[:size]), "f", size, None)[:2]
        if known.end:
            assert read(raw[:size], 0, known.end) == list(enumerate(rows[: known.end]))
    whole = CONTENT.measure(io.BytesIO(raw), "f", len(raw), known)
    assert whole[:2] == (len(rows), len(raw))


def test_records_are_resolved_as_avro_defines_it() -> None:
    theirs = {"type": "record", "name": "row", "fields": [
        {"name": "more", "type": "string"}, {"name": "id", "type": "int"}]}  # fmt: skip
    ours = {**SCHEMA, "fields": [FIELDS[0], {**FIELDS[1], "default": None}]}
    content = AvroContainer(json.dumps(ours))
    raw = written([{"more": "x", "id": 7}], theirs)
    assert read(raw, 0, 1, content) == [(0, {"id": 7, "x": None})]
    with pytest.raises(SourceStopped, match="another schema"):
        read(raw, 0, 1)  # which has no default for x


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{}\n", "no Avro container file"),
        (b"Obj\x02", "no Avro container file"),
        (written([{"id": 1, "x": "a"}])[:-16] + b"\0" * 16, "is damaged"),
    ],
)
def test_what_is_no_such_file_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(SourceStopped, match=message):
        CONTENT.measure(io.BytesIO(raw), "f", len(raw), None)


def test_a_file_that_is_not_complete_or_was_truncated() -> None:
    raw = written([{"id": 1, "x": "a"}])
    for size in (0, 3, 10, len(raw) - 1):
        assert CONTENT.measure(io.BytesIO(raw[:size]), "f", size, None).end == 0
    with pytest.raises(SourceStopped, match="not complete"):
        CONTENT.measure_complete(io.BytesIO(raw[:-1]), "f", len(raw) - 1)
    with pytest.raises(SourceRegressed, match="truncated"):
        read(raw, 0, 2)
    with pytest.raises(SourceRegressed, match="changed"):
        read(b"", 0, 1)
