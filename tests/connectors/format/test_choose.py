"""Which decoder a statement gets, and which columns and options it is refused for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reclock.connectors.format import Field, decoder_of
from reclock.connectors.format.csv_decoder import CsvDecoder
from reclock.connectors.format.json_decoder import JsonDecoder
from reclock.connectors.format.plain import BytesDecoder, TextDecoder
from reclock.dataflow.types import arrow_type
from reclock.errors import Error
from reclock.sql import types as t
from reclock.sql.statement.source import Format


def field(kind: t.Type, name: str = "a") -> Field:
    return Field(name, kind, arrow_type(kind))


NUMBER, LINE, RAW = field(t.BIGINT), field(t.TEXT), field(t.BYTEA)


def test_decoders() -> None:
    assert decoder_of(Format("json"), [NUMBER], {}) == JsonDecoder((NUMBER,))
    strict = decoder_of(Format("json"), [NUMBER], {"unknown_fields": "fail"})
    assert strict == JsonDecoder((NUMBER,), strict=True)
    assert decoder_of(Format("csv"), [NUMBER], {"delimiter": ";"}) == CsvDecoder((NUMBER,), ";")
    assert decoder_of(Format("text"), [LINE], {}) == TextDecoder(LINE)
    assert decoder_of(Format("bytes"), [RAW], {}) == BytesDecoder(RAW)


@pytest.mark.parametrize(
    ("kind", "fields", "options", "code", "message"),
    [
        ("text", [NUMBER], {}, "42P17", "FORMAT TEXT fills one column of type text"),
        ("text", [LINE, LINE], {}, "42P17", "FORMAT TEXT fills one column of type text"),
        ("bytes", [], {}, "42P17", "FORMAT BYTES fills one column of type bytea"),
        ("csv", [field(t.Array(t.Record((("x", t.TEXT),))))], {}, "0A000",
         'column "a" of type record(x text)[] cannot be read from CSV'),
        ("csv", [LINE], {"delimiter": "ab"}, "22023", 'invalid value for option "delimiter": "ab"'),
        ("csv", [LINE], {"delimiter": '"'}, "22023", 'invalid value for option "delimiter": """'),
        ("csv", [LINE], {"delimiter": ""}, "22023", 'invalid value for option "delimiter": ""'),
        ("json", [LINE], {"unknown_fields": "no"}, "22023",
         'invalid value for option "unknown_fields": "no"'),
        ("json", [Field("a", t.Array(t.UNKNOWN), pa.list_(pa.null()))], {}, "42P17",
         'column "a" has type unknown[]'),
        ("xml", [LINE], {}, "0A000", "FORMAT XML is not supported"),
    ],
)  # fmt: skip
def test_refusals(
    kind: str, fields: list[Field], options: dict[str, str], code: str, message: str
) -> None:
    with pytest.raises(Error) as raised:
        decoder_of(Format(kind), fields, options)
    assert (raised.value.code, raised.value.message) == (code, message)
    assert raised.value.hint or raised.value.detail
