"""Keys of one column: an object, a bare value, or bare text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.connectors.key import BareKey
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, TEXT


def decode(kind, arrow, *payloads):
    field = Field("k", kind, arrow, nullable=False)
    key = BareKey(decoder_of(Format("json"), [field], {}), "k", kind == TEXT)
    decoded = key.decode(pa.array(payloads, pa.binary()))
    faults = [None] * len(payloads) if decoded.faults is None else decoded.faults.to_pylist()
    return decoded.columns[0].to_pylist(), [fault is not None for fault in faults]


@pytest.mark.parametrize(
    ("payload", "value", "faulty"),
    [(b"7", 7, False), (b'{"k": 7}', 7, False), (b'{"k": 7, "z": 1}', 7, False), (b"x", None, True),
     (b"", None, True), (None, None, False), (b"{}", None, True), (b"7}{", None, True),
     (b'7,"k":8', None, True), (b' {"k": 7}', 7, False), (b'\r\n\t{"k":7} ', 7, False),
     (b" 7 ", 7, False), (b" {}", None, True)],
)  # fmt: skip
def test_numbers(payload, value, faulty):
    assert decode(BIGINT, pa.int64(), payload) == ([value], [faulty])


@pytest.mark.parametrize(
    ("payload", "value", "faulty"),
    [(b"k1", "k1", False), (b'"k1"', "k1", False), (b'{"k": "k1"}', "k1", False),
     ("é".encode(), "é", False), (b"\xff", None, True), (b"", "", False), (None, None, False),
     (b'a","k":"b', 'a","k":"b', False), (b'"a","k":"b"', '"a","k":"b"', False),
     (b'"a,b"', "a,b", False), (b' {"k": "a"}', "a", False), (b" {a", " {a", False)],
)  # fmt: skip
def test_text(payload, value, faulty):
    assert decode(TEXT, pa.string(), payload) == ([value], [faulty])


def test_a_batch_of_all_kinds():
    values, faulty = decode(TEXT, pa.string(), b"a", b'"b"', b'{"k": "c"}', None, b"\xff")
    assert values == ["a", "b", "c", None, None]
    assert faulty == [False, False, False, False, True]
