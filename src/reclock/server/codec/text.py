"""Values as text: what PostgreSQL's output functions write, and its input functions read.

``write`` takes a value as Arrow gives it (``pa.Array.to_pylist``) and ``read`` gives one as
Python has it, for a parameter. Times are in UTC, the only zone there is; dates are ISO.

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reclock.coordinator.copy_text import in_array, in_record, text_of
from reclock.errors import InvalidValue
from reclock.sql import types as t
from reclock.sql.plan.coerce import read_literal
from reclock.sql.plan.interval import parse_interval

if TYPE_CHECKING:
    from reclock.sql.types import Type


def write(value: Any, kind: Type) -> str:
    """Return a value, not NULL, as text.

    >>> write(14, t.MONTHS), write([[1], [None]], t.Array(t.Array(t.BIGINT)))
    ('1 year 2 mons', '{{1},{NULL}}')
    """
    match kind:
        case t.Array(element):
            return "{" + ",".join(_element(v, element) for v in value) + "}"
        case t.Record(fields):
            texts = (
                "" if value[name] is None else in_record(write(value[name], inside))
                for name, inside in fields
            )
            return "(" + ",".join(texts) + ")"
    if kind == t.JSON:
        return str(value)
    if kind == t.MONTHS:
        return _months(value)
    if kind == t.REAL:
        return text_of(float(str(np.float32(value))), kind)
    return text_of(value, kind)


def _element(value: Any, kind: Type) -> str:
    if value is None:
        return "NULL"
    text = write(value, kind)
    return text if isinstance(kind, t.Array) else in_array(text)


def _months(months: int) -> str:
    """Return an interval of months.

    >>> _months(-14), _months(1), _months(0)
    ('-1 years -2 mons', '1 mon', '00:00:00')
    """
    years, rest = divmod(abs(months), 12)
    sign = -1 if months < 0 else 1
    parts = [(years * sign, "year"), (rest * sign, "mon")]
    shown = [f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n]
    return " ".join(shown) or "00:00:00"


def read(text: str, kind: Type) -> tuple[Any, Type]:
    """Return the value that a text means, and its type: of an interval, which one it is.

    >>> read("{1,NULL}", t.Array(t.BIGINT)), read("2 years", t.INTERVAL)
    (((1, None), Array(element=Simple(name='bigint'))), (24, Simple(name='interval year to month')))
    """
    if kind == t.INTERVAL:
        return parse_interval(text)
    if isinstance(kind, t.Array):
        return _Elements(text, kind.element).read(), kind
    return read_literal(text, kind), kind


class _Elements:
    """Reads the text of an array, with quotes and inner arrays."""

    def __init__(self, text: str, element: Type) -> None:
        self._text = text.strip()
        self._element = element
        self._at = 0

    def read(self) -> tuple[Any, ...]:
        """Return the elements."""
        found = self._array()
        if self._at != len(self._text):
            raise self._wrong()
        return found

    def _array(self) -> tuple[Any, ...]:
        self._expect("{")
        found: list[Any] = []
        while not self._accept("}"):
            if found:
                self._expect(",")
            self._blanks()
            found.append(self._array() if self._peek() == "{" else self._value())
            self._blanks()
        return tuple(found)

    def _value(self) -> Any:
        if self._accept('"'):
            return self._typed(self._until('"', quoted=True))
        raw = self._until(",}", quoted=False).strip()
        if not raw:
            raise self._wrong()
        return None if raw.upper() == "NULL" else self._typed(raw)

    def _until(self, ends: str, *, quoted: bool) -> str:
        """Return the text up to one of ``ends``, which is read only if it is a quote."""
        made = []
        while (character := self._peek()) not in ends:
            if not quoted and character in '{"':
                raise self._wrong()
            self._at += 1
            if character == "\\":
                character = self._peek()
                self._at += 1
            made.append(character)
        self._at += quoted
        return "".join(made)

    def _typed(self, text: str) -> Any:
        return read(text, self._element)[0]

    def _blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise self._wrong()
        return self._text[self._at]

    def _accept(self, character: str) -> bool:
        found = self._peek() == character
        self._at += found
        return found

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise self._wrong()

    def _wrong(self) -> InvalidValue:
        message = f'malformed array literal: "{self._text:.200}"'
        hint = "write values between braces, with commas, such as {1,2}"
        return InvalidValue(message, code="22P02", hint=hint)
