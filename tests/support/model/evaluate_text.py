"""Functions of texts, bytes, json and bits in plain Python, with PostgreSQL's meaning.

``STRICT`` are functions of values, none of them NULL; ``TYPED`` are given the types of their
arguments first.

Compared with PostgreSQL: tests/functions/test_model.py.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import Error
from reclock.sql import types as t
from reclock.sql.float_text import float_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

_MOST: Final = 2**26  # bytes


class Refused(Error):
    """Arguments for which a function has no value."""

    def __init__(self, *, code: str, message: str) -> None:
        super().__init__(message, code=code)


def _initcap(text: str) -> str:
    made, inside = "", False
    for c in text:
        made += c.lower() if inside else c.upper()
        inside = c.isalpha() or c.isdecimal()
    return made


def _padding(text: str, length: int, fill: str) -> tuple[str, str]:
    """Return what stays of ``text``, and what fills it up."""
    if 4 * length > _MOST:
        raise Refused(code="54000", message="requested length too large")
    missing = max(length, 0) - len(text)
    if missing <= 0 or not fill:
        return text[: max(length, 0)], ""
    return text, (fill * (missing // len(fill) + 1))[:missing]


def _lpad(text: str, length: int, fill: str = " ") -> str:
    kept, filled = _padding(text, length, fill)
    return filled + kept


def _rpad(text: str, length: int, fill: str = " ") -> str:
    return "".join(_padding(text, length, fill))


def _split_part(text: str, delimiter: str, place: int) -> str:
    if place == 0:
        raise Refused(code="22023", message="field position must not be zero")
    pieces = text.split(delimiter) if delimiter else [text]
    at = place - 1 if place > 0 else len(pieces) + place
    return pieces[at] if 0 <= at < len(pieces) else ""


def _translate(text: str, wanted: str, given: str) -> str:
    table: dict[int, str | None] = {}
    for at, c in enumerate(wanted):
        table.setdefault(ord(c), given[at] if at < len(given) else None)
    return text.translate(table)


def _character(code: int) -> str:
    if code < 0:
        raise Refused(code="22023", message="character number must be positive")
    if code == 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise Refused(code="54000", message="requested character is not valid for encoding")
    return chr(code)


def _hash(value: str | bytes) -> str:
    return hashlib.md5(_raw(value), usedforsecurity=False).hexdigest()


def _raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _encoded(value: bytes, form: str) -> str:
    if form == "hex":
        return value.hex()
    if form != "base64":
        raise Refused(code="22023", message="unrecognized encoding")
    plain = base64.b64encode(value).decode()
    return "\n".join(plain[at : at + 76] for at in range(0, len(plain), 76))


def _pieces(text: str, delimiter: str) -> tuple[str, ...]:
    if not text:
        return ()
    return tuple(text.split(delimiter)) if delimiter else (text,)


class _Number(str):
    """A number of a json text, as it is written there."""


def _member(document: str, key: str | int) -> Any:
    """Return a member or an element of a json text, alone in a list; an empty list if none."""
    value = json.loads(document, parse_float=_Number)
    if isinstance(key, str):
        return [value[key]] if isinstance(value, dict) and key in value else []
    inside = isinstance(value, list) and -len(value) <= key < len(value)
    return [value[key]] if inside else []


def _written(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)


def _json(document: str, key: str | int) -> str | None:
    found = _member(document, key)
    return _written(found[0]) if found else None


def _json_text(document: str, key: str | int) -> str | None:
    found = _member(document, key)
    if not found or found[0] is None:
        return None
    return str(found[0]) if isinstance(found[0], str) else _written(found[0])


def _json_length(document: str) -> int:
    value = json.loads(document)
    if not isinstance(value, list):
        raise Refused(code="22023", message="cannot get array length of a non-array")
    return len(value)


def _bits(kinds: Sequence[t.Type]) -> int:
    return 64 if kinds[0] == t.BIGINT else 32


def _shifted(kinds: Sequence[t.Type], value: int, by: int) -> int:
    """Return a number whose bits moved left within its width; right if ``by`` is negative."""
    every = 1 << _bits(kinds)
    moved = (value << by if by >= 0 else value >> -by) % every
    return moved - every if moved >= every // 2 else moved


def _left(kinds: Sequence[t.Type], value: int, by: int) -> int:
    return _shifted(kinds, value, by % _bits(kinds))


def _right(kinds: Sequence[t.Type], value: int, by: int) -> int:
    return _shifted(kinds, value, -(by % _bits(kinds)))


def text_of(value: Any, kind: t.Type, *, element: bool = False) -> str:  # noqa: PLR0911 - one per type
    """Return the text of a value; that of an element of an array if ``element``."""
    if isinstance(kind, t.Array):
        return "{" + ",".join(_quoted(v, kind.element) for v in value) + "}"
    if isinstance(value, bool):
        return str(value).lower()[0] if element else str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return float_text(value, kind)
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if kind in {t.TIMESTAMP, t.TIMESTAMPTZ}:
        return _time(value) + ("+00" if kind == t.TIMESTAMPTZ else "")
    return str(value)


def _time(value: datetime) -> str:
    fraction = f".{value.microsecond:06}".rstrip("0.")
    return value.isoformat(" ")[:19] + fraction


def _quoted(value: Any, kind: t.Type) -> str:
    if value is None:
        return "NULL"
    text = text_of(value, kind, element=True)
    plain = text and text.upper() != "NULL" and not re.search(r'[{}",\\\s]', text)
    return text if plain else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _joined(kinds: Sequence[t.Type], array: Sequence[Any], delimiter: str) -> str:
    kind = kinds[0]
    assert isinstance(kind, t.Array)
    present = [v for v in array if v is not None]
    return delimiter.join(text_of(v, kind.element, element=True) for v in present)


def joined_with(separator: str | None, *values: str | None) -> str | None:
    """Return what ``concat_ws`` makes of texts, of which some are NULL."""
    return None if separator is None else separator.join(v for v in values if v is not None)


STRICT: Final[dict[tuple[str, int], Callable[..., object]]] = {
    ("lower", 1): str.lower,
    ("upper", 1): str.upper,
    ("initcap", 1): _initcap,
    ("character_length", 1): len,
    ("octet_length", 1): lambda value: len(_raw(value)),
    ("ascii", 1): lambda text: ord(text[0]) if text else 0,
    ("chr", 1): _character,
    ("md5", 1): _hash,
    ("sha256", 1): lambda value: hashlib.sha256(value).digest(),
    ("translate", 3): _translate,
    ("lpad", 2): _lpad,
    ("lpad", 3): _lpad,
    ("rpad", 2): _rpad,
    ("rpad", 3): _rpad,
    ("ltrim", 2): lambda text, letters: text.lstrip(letters) if letters else text,
    ("rtrim", 2): lambda text, letters: text.rstrip(letters) if letters else text,
    ("split_part", 3): _split_part,
    ("~*", 2): lambda text, pattern: re.search(pattern, text, re.IGNORECASE) is not None,
    ("string_to_array", 2): _pieces,
    ("encode", 2): _encoded,
    ("to_hex", 1): lambda number: f"{number % 2**32:x}",
    ("->", 2): _json,
    ("->>", 2): _json_text,
    ("json_array_length", 1): _json_length,
    ("array_length", 2): lambda array, dimension: (len(array) or None) if dimension == 1 else None,
}

TYPED: Final[dict[str, Callable[..., object]]] = {
    "<<": _left,
    ">>": _right,
    "array_to_string": _joined,
}
