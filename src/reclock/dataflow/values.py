"""Python values ⇄ Arrow columns of a SQL type.

Outwards (``to_python``) a value is what psycopg gives: int, Decimal, float, str, bytes,
date, datetime (UTC for timestamptz), what ``json`` parses, list for an array, tuple for a record;
but an interval is an ``Interval``, because psycopg's timedelta has no months.

Inwards (``from_python``) it is what psycopg takes, checked against the type: a number that
does not fit is 22003, a time that does not fit 22008, text that is no literal of the type
22P02, a value of another kind 42804. A string is read as a literal of the type, as
PostgreSQL reads a parameter. Numerics round half up to their scale; a timestamptz without
a zone is in UTC; an interval may be a timedelta.

Cost: a pass over the values in Python. Bulk data should stay in Arrow.

Tests: tests/dataflow/test_values.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.dataflow.types import arrow_type
from reclock.errors import InvalidValue, WrongType
from reclock.interval import Interval
from reclock.sql import types as t
from reclock.sql.plan.coerce import read_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.sql.types import Type

_RANGES: Final[dict[Type, int]] = {t.SMALLINT: 2**15, t.INTEGER: 2**31, t.BIGINT: 2**63}
_EXACT: Final = Context(prec=t.MAX_PRECISION * 2, rounding=ROUND_HALF_UP)


def to_python(column: pa.Array | pa.ChunkedArray, kind: Type) -> list[Any]:
    """Return the values as psycopg gives them.

    >>> to_python(from_python([timedelta(days=1), None], t.INTERVAL), t.INTERVAL)
    [Interval(months=0, days=1, microseconds=0), None]
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as cause:  # a year that Python's datetime has not
        message = f"a value of type {kind} is out of the range of Python"
        raise InvalidValue(message, detail=str(cause), code="22008") from cause
    shown = _shown(kind)
    if shown is None:
        return values
    return [None if value is None else shown(value) for value in values]


def _shown(kind: Type) -> Callable[[Any], Any] | None:
    """Return how a value that Arrow gives becomes psycopg's; None if it already is."""
    if isinstance(kind, t.Array):
        each = _shown(kind.element)
        if each is None:
            return None
        return lambda values: [None if v is None else each(v) for v in values]
    if isinstance(kind, t.Record):
        fields = [(name, _shown(inside)) for name, inside in kind.fields]
        return lambda value: tuple(
            value[name] if shown is None or value[name] is None else shown(value[name])
            for name, shown in fields
        )
    return _SHOWN.get(kind)


def _whole(numbers: Mapping[str, int]) -> Interval:
    return Interval(numbers["months"], numbers["days"], numbers["micros"])


def _shortest(value: float) -> float:
    """Return the shortest double that is this float: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value)))


_SHOWN: Final[dict[Type, Callable[[Any], Any]]] = {
    t.JSON: json.loads,
    t.REAL: _shortest,
    t.INTERVAL: _whole,
}


def from_python(values: Iterable[object], kind: Type) -> pa.Array:
    """Return the values as a column of type ``kind``, checked.

    >>> from_python(["7", 8, None], t.SMALLINT).to_pylist()
    [7, 8, None]
    >>> from_python([40_000], t.SMALLINT)
    Traceback (most recent call last):
    reclock.errors.InvalidValue: value 40000 is out of range for type smallint
    """
    return pa.array([checked(value, kind) for value in values], arrow_type(kind))


def checked(value: object, kind: Type) -> Any:
    """Return ``value`` as Arrow takes it for a column of type ``kind``, or refuse it."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(kind, t.Numeric):
        return _numeric(value, kind)
    if isinstance(kind, t.Array):
        return _array(value, kind)
    if isinstance(kind, t.Record):
        return _record(value, kind)
    if isinstance(value, str) and kind not in {t.TEXT, t.JSON}:
        value = read_literal(value, kind)
    if kind in _RANGES:
        return _integer(value, kind)
    return _SIMPLE[kind](value, kind)


def _wrong(value: object, kind: Type) -> WrongType:
    message = f"a value of type {kind} cannot be made from {type(value).__name__} {value!r:.60}"
    return WrongType(message)


def _range(value: object, kind: Type, code: str = "22003") -> InvalidValue:
    return InvalidValue(f"value {value} is out of range for type {kind}", code=code)


def _integer(value: object, kind: Type) -> int:
    if isinstance(value, bool):
        raise _wrong(value, kind)
    try:
        number = index(value)  # type: ignore[arg-type]  # asks whether it is an integer
    except TypeError as cause:
        raise _wrong(value, kind) from cause
    if not -_RANGES[kind] <= number < _RANGES[kind]:
        raise _range(number, kind)
    return number


def _numeric(value: object, kind: t.Numeric) -> Decimal:
    if isinstance(value, str):
        value = _decimal_text(value, kind)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _wrong(value, kind)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    try:
        rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
        fits = rounded.copy_abs() < 10 ** (kind.precision - kind.scale)
    except InvalidOperation:  # NaN, infinite, or far too many digits
        fits = False
    if not fits:
        message = "numeric field overflow"
        raise InvalidValue(message, detail=f"{value} does not fit {kind}", code="22003")
    return rounded


def _decimal_text(text: str, kind: Type) -> Decimal:
    try:
        return Decimal(text.strip())
    except InvalidOperation as cause:
        message = f'invalid input syntax for type {kind}: "{text}"'
        raise InvalidValue(message, code="22P02") from cause


def _array(value: object, kind: t.Array) -> list[Any]:
    if isinstance(value, str):
        value = read_literal(value, kind)
    if not isinstance(value, list | tuple):
        raise _wrong(value, kind)
    return [checked(element, kind.element) for element in value]


def _record(value: object, kind: t.Record) -> dict[str, Any]:
    if isinstance(value, Mapping):
        value = tuple(value.get(name) for name, _ in kind.fields)
    if not isinstance(value, list | tuple) or len(value) != len(kind.fields):
        raise _wrong(value, kind)
    pairs = zip(kind.fields, value, strict=True)
    return {name: checked(part, inside) for (name, inside), part in pairs}


def _boolean(value: object, kind: Type) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, kind)
    return value


def _float(value: object, kind: Type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _wrong(value, kind)
    try:
        number = float(value)
    except OverflowError as cause:
        raise _range(value, kind) from cause
    if kind == t.REAL and math.isfinite(number):
        with np.errstate(over="ignore"):
            if not np.isfinite(np.float32(number)):
                raise _range(value, kind)
    return number


def _text(value: object, kind: Type) -> str:
    if not isinstance(value, str):
        raise _wrong(value, kind)
    try:
        value.encode()
    except UnicodeEncodeError as cause:
        message = "text has a character that UTF-8 cannot encode"
        raise InvalidValue(message, detail=str(cause), code="22021") from cause
    return value


def _json(value: object, kind: Type) -> str:
    try:
        if not isinstance(value, str):
            return json.dumps(value, allow_nan=False)
        json.loads(value, parse_constant=_no_constant)
    except TypeError as cause:
        raise _wrong(value, kind) from cause
    except ValueError as cause:
        message = "invalid input syntax for type json"
        raise InvalidValue(message, detail=str(cause), code="22P02") from cause
    return _text(value, kind)


def _no_constant(name: str) -> None:
    message = f'token "{name}" is invalid'
    raise ValueError(message)


def _bytes(value: object, kind: Type) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(value, kind)
    return bytes(value)


def _date(value: object, kind: Type) -> date:
    if isinstance(value, datetime):
        return value.date()
    if not isinstance(value, date):
        raise _wrong(value, kind)
    return value


def _timestamp(value: object, kind: Type) -> datetime:
    if not isinstance(value, datetime):
        moment = _date(value, kind)
        return datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - without a zone
    return _moment(value).replace(tzinfo=None)


def _timestamptz(value: object, kind: Type) -> datetime:
    return _moment(value if isinstance(value, datetime) else _timestamp(value, kind))


def _moment(value: datetime) -> datetime:
    """Return the moment in UTC; without a zone it is in UTC, the zone of every session."""
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError as cause:
        raise _range(value, t.TIMESTAMPTZ, "22008") from cause


def _interval(value: object, kind: Type) -> dict[str, int]:
    if isinstance(value, timedelta):
        value = Interval.of(value)
    if not isinstance(value, Interval):
        raise _wrong(value, kind)
    return {"days": value.days, "micros": value.microseconds, "months": value.months}


def _nothing(value: object, kind: Type) -> None:
    raise _wrong(value, kind)


_SIMPLE: Final[dict[Type, Callable[[object, Type], Any]]] = {
    t.BOOLEAN: _boolean,
    t.REAL: _float,
    t.DOUBLE: _float,
    t.TEXT: _text,
    t.JSON: _json,
    t.BYTEA: _bytes,
    t.DATE: _date,
    t.TIMESTAMP: _timestamp,
    t.TIMESTAMPTZ: _timestamptz,
    t.INTERVAL: _interval,
    t.UNKNOWN: _nothing,
}


def rows_of(table: pa.Table, kinds: Sequence[Type]) -> list[tuple[Any, ...]]:
    """Return the rows of an answer as tuples of Python values."""
    columns = [to_python(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
