r"""PostgreSQL's text format of COPY: a line per row, tabs between values, ``\N`` for NULL.

Values are what SELECT gives, in PostgreSQL's output format; backslashes, tabs and line ends
inside them are escaped, so that a row is always one line.

Tests: tests/session/test_copy.py.
"""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import InvalidValue
from reclock.sql import types as t
from reclock.sql.float_text import float_text
from reclock.sql.zone import local_text, zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.sql.types import Type

_ESCAPES: Final = str.maketrans(
    {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)


def line(
    row: Sequence[Any], kinds: Sequence[Type], delimiter: str = "\t", null: str = "\\N"
) -> str:
    r"""Return a row as a line.

    >>> line((1, None, "a\tb", True), (t.BIGINT, t.TEXT, t.TEXT, t.BOOLEAN))
    '1\t\\N\ta\\tb\tt\n'
    """
    values = zip(row, kinds, strict=True)
    texts = (null if v is None else _escaped(text_of(v, k), delimiter) for v, k in values)
    return delimiter.join(texts) + "\n"


def _escaped(text: str, delimiter: str) -> str:
    escaped = text.translate(_ESCAPES)
    return escaped if delimiter == "\t" else escaped.replace(delimiter, "\\" + delimiter)


def utf8(data: bytes) -> str:
    """Return the text that bytes are; 22021 if they are none, or have a zero, as no text has."""
    try:
        found = data.decode()
    except UnicodeDecodeError as cause:
        raise _no_text(data[cause.start]) from cause
    if "\0" in found:
        raise _no_text(0)
    return found


def _no_text(byte: int) -> InvalidValue:
    message = f'invalid byte sequence for encoding "UTF8": 0x{byte:02x}'
    return InvalidValue(message, code="22021", hint="text is UTF-8; bytea can have any bytes")


def text_of(value: Any, kind: Type) -> str:
    """Return a value, not NULL, as PostgreSQL writes it.

    >>> text_of(1.5, t.DOUBLE), text_of([1, None], t.Array(t.BIGINT))
    ('1.5', '{1,NULL}')
    """
    match kind:
        case t.Array(element):
            return "{" + ",".join(_element(v, element) for v in value) + "}"
        case t.Record(fields):
            pairs = zip(value, (inside for _, inside in fields), strict=True)
            texts = ("" if v is None else in_record(text_of(v, k)) for v, k in pairs)
            return "(" + ",".join(texts) + ")"
    if kind == t.JSON:
        return json.dumps(value, ensure_ascii=False)
    if kind in t.FLOATS:
        return float_text(value, kind)
    return _TEXTS.get(type(value), str)(value)


def _element(value: Any, kind: Type) -> str:
    if value is None:
        return "NULL"
    text = text_of(value, kind)
    return text if isinstance(kind, t.Array) else in_array(text)


def in_array(text: str) -> str:
    """Return a value's text as it stands in the text of an array."""
    special = not text or text.upper() == "NULL" or any(c in '{}",\\' or c.isspace() for c in text)
    return _quoted(text) if special else text


def in_record(text: str) -> str:
    """Return a value's text as it stands in the text of a record."""
    special = not text or any(c in '(),"\\' or c.isspace() for c in text)
    return _quoted(text) if special else text


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _moment(value: datetime) -> str:
    if value.tzinfo is not None:
        return local_text(value, zone())
    text = value.isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    bool: lambda value: "t" if value else "f",
    Decimal: lambda value: f"{value:f}",
    bytes: lambda value: f"\\x{value.hex()}",
    datetime: _moment,
}
