"""TEXT and BYTES."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from reclock.connectors.format import Field
from reclock.connectors.format.plain import BytesDecoder, TextDecoder
from reclock.sql.types import BYTEA, TEXT


@pytest.mark.parametrize("copies", [1, 500])
def test_text_is_utf8(copies: int) -> None:
    decoder = TextDecoder(Field("line", TEXT, pa.string()))
    good = ["é\n", "", None, "\x00"] * copies
    data = pa.array([None if g is None else g.encode() for g in good], pa.binary())
    done = decoder.decode(data)
    assert done.columns[0].equals(pa.array(good, pa.string()))
    assert done.faults is None
    done = decoder.decode(pa.concat_arrays([data, pa.array([b"a\xff", b"b"], pa.binary())]))
    assert done.columns[0].to_pylist() == [*good, None, "b"]
    assert done.faults.to_pylist() == [*[None] * len(good), "not UTF-8: byte 1 is 0xff", None]


def test_bytes_are_what_they_are() -> None:
    data = pa.array([b"\xff\x00", b"", None], pa.binary())
    done = BytesDecoder(Field("raw", BYTEA, pa.binary())).decode(data)
    assert done.columns == (data,)
    assert done.faults is None


def test_decoders_are_values() -> None:
    for decoder in (
        TextDecoder(Field("a", TEXT, pa.string())),
        BytesDecoder(Field("a", BYTEA, pa.binary())),
    ):
        assert pickle.loads(pickle.dumps(decoder)) == decoder
