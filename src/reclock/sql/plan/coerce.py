"""Conversions: which happen by themselves, which must be written, and literals' values.

A quoted literal has no type until its surroundings want one; it is then read once, when
the plan is made, so ``'abc'::int`` is refused before anything runs. Common types follow
PostgreSQL: numbers widen, date < timestamp < timestamptz, text only meets text.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

from reclock.errors import NotSupported, StatementError, WrongType
from reclock.interval import Interval
from reclock.sql import types as t
from reclock.sql.float_text import read_float
from reclock.sql.interval import parse_interval
from reclock.sql.plan.array_text import read_array
from reclock.sql.plan.date_text import read_date, read_timestamp, read_timestamptz
from reclock.sql.plan.functions import implicit_cost
from reclock.sql.plan.late import Late
from reclock.sql.plan.scalar import Cast, ColumnRef, Literal, Scalar, Unbound
from reclock.sql.plan.zoned import cast_there

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.sql.types import Type

_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
_RANGES: dict[Type, int] = {t.SMALLINT: 2**15, t.INTEGER: 2**31, t.BIGINT: 2**63}
_EXAMPLES: dict[Type, str] = {
    t.SMALLINT: "a whole number, such as 42",
    t.INTEGER: "a whole number, such as 42",
    t.BIGINT: "a whole number, such as 42",
    t.BOOLEAN: "true or false",
    t.DATE: "a date, such as 2026-01-31",
    t.TIMESTAMP: "a time, such as 2026-01-31 12:00:00",
    t.TIMESTAMPTZ: "a time with its zone, such as 2026-01-31 12:00:00+00",
}
_TRUE = {"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"}
_FALSE = {"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"}


def common_type(given: Iterable[Type], what: str) -> Type:
    """Return the type that all of ``given`` become in ``what`` (CASE, UNION, …).

    It is not that in which two operands meet (``meeting_type``): of numeric and real it is real.
    """
    known = [g for g in given if g != t.UNKNOWN]
    if not known:
        return t.TEXT
    result = known[0]
    for other in known[1:]:
        result = _common(result, other, what)
    return result


def _common(a: Type, b: Type, what: str) -> Type:
    if a == b:
        return a
    if t.is_number(a) and t.is_number(b):
        narrow = t.REAL in {a, b} and t.DOUBLE not in {a, b}
        return t.REAL if narrow else t.wider_number(a, b)
    if isinstance(a, t.Array) and isinstance(b, t.Array):
        return t.Array(_common(a.element, b.element, what))
    for x, y in ((a, b), (b, a)):
        if implicit_cost(x, y) is not None:
            return y
    message = f"{what} types {a} and {b} cannot be matched"
    raise WrongType(message, hint=f"cast one of them, for instance with ::{b}")


def meeting_type(a: Type, b: Type, what: str) -> Type:
    """Return the type as which the operands ``a`` and ``b`` of a comparison are compared."""
    if t.is_number(a) and t.is_number(b):
        return t.wider_number(a, b)
    return common_type((a, b), what)


def to_meet(scalars: Sequence[Scalar], what: str) -> tuple[Scalar, ...]:
    """Convert the two operands of a comparison to the type as which they are compared."""
    a, b = exact(scalars)
    wanted = meeting_type(a.type, b.type, what)
    return convert(a, wanted), convert(b, wanted)


def exact(scalars: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Give texts of no type that meet numerics all digits that they have: '1.501' is not 1.50."""
    if any(isinstance(s.type, t.Numeric) for s in scalars):
        return tuple(map(_number, scalars))
    if any(isinstance(s.type, t.Array) and isinstance(s.type.element, t.Numeric) for s in scalars):
        return tuple(map(_numbers, scalars))
    return tuple(scalars)


def _number(scalar: Scalar) -> Scalar:
    text = _untyped(scalar)
    try:
        made = None if text is None else Decimal(text)
    except InvalidOperation:
        return scalar  # an error where it is read
    return number_literal(str(text)) if made is not None and made.is_finite() else scalar


def _numbers(scalar: Scalar) -> Scalar:
    text = _untyped(scalar)
    try:
        elements = () if text is None else read_array(text, t.TEXT, _read)
    except ValueError:
        return scalar
    made = [_number(Literal(e, t.UNKNOWN)) for e in elements]
    kinds = [m.type for m in made]
    if not made or not all(isinstance(m, Literal) and t.is_number(m.type) for m in made):
        return scalar
    kind = common_type([t.Numeric(1, 0), *kinds], "ARRAY")
    values = [convert(m, kind) for m in made]
    if not all(isinstance(v, Literal) for v in values):
        return scalar
    return Literal(tuple(v.value for v in values if isinstance(v, Literal)), t.Array(kind))


def _untyped(scalar: Scalar) -> str | None:
    """Return the text of a literal of no type that might be a number."""
    if not isinstance(scalar, Literal) or scalar.type != t.UNKNOWN:
        return None
    value = scalar.value
    return value.strip() if isinstance(value, str) and value.isascii() else None


def to_common(scalars: Sequence[Scalar], what: str) -> tuple[Scalar, ...]:
    """Convert ``scalars`` to the type they have in common."""
    scalars = exact(scalars)
    wanted = common_type((s.type for s in scalars), what)
    return tuple(convert(s, wanted) for s in scalars)


def convert(scalar: Scalar, wanted: Type) -> Scalar:
    """Return ``scalar`` as ``wanted``: itself, a literal read again, or a cast."""
    if scalar.type == wanted:
        return scalar
    if isinstance(scalar, Literal):
        if isinstance(scalar, Unbound):
            scalar.wanted(wanted)
        if scalar.value is None:
            return Literal(None, wanted)
        if scalar.type == t.UNKNOWN:
            return Literal(read_literal(str(scalar.value), wanted), wanted)
        folded = _fold(scalar, wanted)
        if folded is not None:
            return folded
    return cast_there(scalar, wanted) or Cast(scalar, wanted)


def _fold(literal: Literal, wanted: Type) -> Literal | None:
    """Widen a number at once, where nothing can go wrong."""
    value = literal.value
    if isinstance(value, Late):  # not known, but a whole number stays the same one when it widens
        ranges = _RANGES.get(literal.type), _RANGES.get(wanted)
        widens = ranges[0] is not None and ranges[1] is not None and ranges[0] <= ranges[1]
        return Literal(value, wanted) if widens else None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, int) and wanted in _RANGES and -_RANGES[wanted] <= value < _RANGES[wanted]:
        return Literal(value, wanted)
    if wanted == t.DOUBLE:
        return Literal(float(value), wanted)
    if isinstance(wanted, t.Numeric):
        number = Decimal(value)
        exact = _EXACT.quantize(number, Decimal(1).scaleb(-wanted.scale))
        if exact == number and number.copy_abs() < Decimal(10) ** (wanted.precision - wanted.scale):
            return Literal(exact, wanted)
    return None


def negative(literal: Literal) -> Literal | None:
    """Return minus a constant; None if that is not known here, or does not fit its type.

    >>> negative(Literal(-32768, t.SMALLINT))
    >>> str(negative(Literal(Decimal("1234567890123456789012345678901234.5"), t.Numeric(38, 1))))
    '-1234567890123456789012345678901234.5'
    """
    value, kind = literal.value, literal.type
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        fits = kind not in _RANGES or value != -_RANGES[kind]
        return Literal(-value, kind) if fits else None
    if isinstance(value, Decimal):  # minus would round it to 28 digits
        return Literal(value.copy_negate() if value else value, kind)
    return Literal(-value, kind) if isinstance(value, float | Interval) else None


def number_literal(text: str) -> Literal:
    """Return a number as written: integer, bigint, or numeric, as PostgreSQL decides.

    A minus before it belongs to it: the least integer is one.

    >>> [str(number_literal(n).type) for n in ("1", "3000000000", "1.50", "1e3", "-2147483648")]
    ['integer', 'bigint', 'numeric(3,2)', 'numeric(4,0)', 'integer']
    """
    if text.removeprefix("-").isdigit():
        value = int(text)
        for kind in (t.INTEGER, t.BIGINT):
            if -_RANGES[kind] <= value < _RANGES[kind]:
                return Literal(value, kind)
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale, 1)
    if precision > t.MAX_PRECISION:
        return Literal(float(text), t.DOUBLE)
    exact = _EXACT.quantize(number, Decimal(1).scaleb(-scale))
    return Literal(exact, t.Numeric(precision, scale))


def read_literal(text: str, wanted: Type) -> object:
    """Return the value that ``text`` stands for in ``wanted``; 22P02 if it does not."""
    try:
        return _read(text, wanted)
    except (ValueError, InvalidOperation, OverflowError) as error:
        message = f'invalid input syntax for type {wanted}: "{text}"'
        hint = f"write {_EXAMPLES.get(wanted, f'a value of type {wanted}')}"
        raise StatementError(message, code="22P02", hint=hint) from error


def _read(text: str, wanted: Type) -> object:  # noqa: PLR0911, PLR0912  # one per case
    stripped = text.strip()
    if wanted in {t.TEXT, t.JSON, t.UNKNOWN, t.CHAR}:
        return text
    if t.is_number(wanted) and not stripped.isascii():
        message = "digits are ASCII's"
        raise ValueError(message)
    if isinstance(wanted, t.Numeric):
        number = Decimal(stripped)
        return _EXACT.quantize(number, Decimal(1).scaleb(-wanted.scale))
    if isinstance(wanted, t.Array):
        return read_array(stripped, wanted.element, _read)
    if wanted == t.OID:
        return int(stripped)
    if wanted in _RANGES:
        value = int(stripped)
        if not -_RANGES[wanted] <= value < _RANGES[wanted]:
            message = f'value "{text}" is out of range for type {wanted}'
            raise StatementError(message, code="22003", hint=_range_hint(wanted))
        return value
    if wanted in t.FLOATS:
        return read_float(text, wanted)
    if wanted == t.BOOLEAN:
        lowered = stripped.lower()
        if lowered in _TRUE | _FALSE:
            return lowered in _TRUE
    if wanted == t.DATE:
        return read_date(stripped)
    if wanted == t.TIMESTAMP:
        return read_timestamp(stripped)
    if wanted == t.TIMESTAMPTZ:
        return read_timestamptz(stripped)
    if wanted == t.INTERVAL:
        return parse_interval(text)
    if wanted == t.BYTEA:
        if stripped.startswith("\\x"):
            return bytes.fromhex(stripped[2:])
        return text.encode()
    message = f"no literal of type {wanted}"
    raise ValueError(message)


_EXPLICIT = {
    (t.BOOLEAN, t.INTEGER), (t.INTEGER, t.BOOLEAN), (t.TIMESTAMP, t.DATE),
    (t.TIMESTAMPTZ, t.DATE), (t.TIMESTAMPTZ, t.TIMESTAMP), (t.JSON, t.TEXT), (t.TEXT, t.JSON),
}  # fmt: skip
_FROM_TEXT = (
    t.BOOLEAN, *t.INTEGERS, *t.FLOATS, *t.DATETIMES, t.INTERVAL, t.JSON,
)  # fmt: skip
_TO_TEXT = (t.BOOLEAN, *t.INTEGERS, *t.FLOATS, *t.DATETIMES, t.INTERVAL, t.JSON, t.BYTEA)


def explicit_cast(scalar: Scalar, wanted: Type, position: int | None = None) -> Scalar:
    """Return ``CAST(scalar AS wanted)``, or refuse a conversion.

    One that PostgreSQL has is not supported (0A000), others do not exist (42846).
    """
    source = scalar.type
    allowed = (
        source in {wanted, t.UNKNOWN}
        or (t.is_number(source) and t.is_number(wanted))
        or implicit_cost(source, wanted) is not None
        or (source, wanted) in _EXPLICIT
        or (source == t.TEXT and (wanted in _FROM_TEXT or isinstance(wanted, t.Numeric)))
        or (wanted == t.TEXT and (source in _TO_TEXT or isinstance(source, t.Numeric)))
        or (wanted == t.TEXT and isinstance(source, t.Array | t.Record))
        or (isinstance(source, t.Array) and isinstance(wanted, t.Array) and _each(source, wanted))
    )
    if allowed:
        return convert(scalar, wanted)
    if _is_of_text(source, wanted):
        message = f"a cast from type {source} to {wanted} is not supported"
        hint = "cast a literal; string_to_array(x, ',') makes an array of a text"
        raise NotSupported(message, hint=hint, position=position)
    message = f"cannot cast type {source} to {wanted}"
    raise WrongType(message, code="42846", position=position)


def _is_of_text(source: Type, wanted: Type) -> bool:
    """Return whether PostgreSQL reads values of a type, or elements, from text that is computed."""
    if isinstance(source, t.Array) and isinstance(wanted, t.Array):
        return _is_of_text(source.element, wanted.element)
    return source == t.TEXT


def _each(source: t.Array, wanted: t.Array) -> bool:
    """Return whether the elements of one array can be cast to those of another."""
    if source.element == t.TEXT and wanted.element == t.INTERVAL:
        return False  # texts are read by a function that takes no elements
    try:
        explicit_cast(ColumnRef(0, source.element), wanted.element)
    except (WrongType, NotSupported):
        return False
    return True


def assignable(scalar: Scalar, wanted: Type, column: str) -> Scalar:
    """Return ``scalar`` as it is stored in a column of type ``wanted``, as INSERT converts it."""
    source = scalar.type
    fits = (
        source in {wanted, t.UNKNOWN}
        or (t.is_number(source) and t.is_number(wanted))
        or implicit_cost(source, wanted) is not None
        or (source in t.DATETIMES and wanted in t.DATETIMES)
        or (wanted == t.TEXT and (source in _TO_TEXT or isinstance(source, t.Numeric)))
    )
    if not fits:
        message = f'column "{column}" is of type {wanted} but expression is of type {source}'
        hint = "you will need to rewrite or cast the expression"
        raise WrongType(message, hint=hint)
    if isinstance(scalar, Literal) and isinstance(scalar.value, int | Decimal):
        _check_range(scalar.value, wanted)
    return convert(scalar, wanted)


def _check_range(value: int | Decimal, wanted: Type) -> None:
    most = _RANGES.get(wanted)
    if isinstance(value, Decimal) and not value.is_finite():
        return
    if most is not None and not -most <= round(value) < most:
        message = f"{wanted} out of range"
        detail = f"{value} is not between {-most} and {most - 1}"
        raise StatementError(message, code="22003", detail=detail, hint=_range_hint(wanted))


def _range_hint(wanted: Type) -> str:
    wider = "numeric" if wanted == t.BIGINT else "bigint or numeric"
    return f"{wanted} takes {-_RANGES[wanted]} to {_RANGES[wanted] - 1}; use {wider} for more"
