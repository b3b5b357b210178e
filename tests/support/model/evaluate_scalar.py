"""Scalars in plain Python, with PostgreSQL's meaning: the judge of ``spark_text``."""

from __future__ import annotations

import json
import math
import operator
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from model import evaluate_interval as model
from model import evaluate_text as texts
from model.evaluate_moment import FIELDS, made_date
from reclock.errors import Error
from reclock.interval import DAY, Interval
from reclock.sql import types as t
from reclock.sql.float_text import nearest
from reclock.sql.plan.coerce import read_literal
from reclock.sql.plan.comparable import NAME
from reclock.sql.plan.functions import interval
from reclock.sql.plan.functions.length import MAX_BYTES, MAX_SERIES, TOO_LONG
from reclock.sql.plan.functions.zoned import CUT
from reclock.sql.plan.scalar import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Fault,
    Literal,
    Or,
    Scalar,
    walk,
)
from reclock.sql.zone import DEFAULT, in_zone, local_text, moment, named, tzinfo_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = tuple[object, ...]
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_UP)
_RANGES = {t.SMALLINT: 2**15, t.INTEGER: 2**31, t.BIGINT: 2**63}


class EvaluationError(Error):
    """An expression that has no value for a row."""

    def __init__(self, *, code: str, message: str) -> None:
        super().__init__(message, code=code)


class _NaN(float):
    """NaN as SQL has it: it equals itself, and is greater than every number."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __new__(cls) -> _NaN:
        return super().__new__(cls, "nan")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return self == other

    def __gt__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: object) -> bool:
        return True


NAN: Final = _NaN()


def normal(value: object) -> object:
    """Return ``value`` with −0.0 as 0.0 and one NaN, as keys compare."""
    if isinstance(value, tuple):
        return tuple(map(normal, value))
    if not isinstance(value, float):
        return value
    return NAN if math.isnan(value) else value if value else 0.0


def evaluate_scalar(scalar: Scalar, row: Row) -> object:  # noqa: PLR0911, PLR0912 - one per case
    """Return the value of ``scalar`` for ``row``; raise ``EvaluationError`` if it has none."""
    match scalar:
        case ColumnRef():
            return normal(row[scalar.index])
        case Literal():
            return normal(scalar.value)
        case And() | Or():
            return _connective(scalar, row)
        case Coalesce():
            for operand in scalar.operands:
                value = evaluate_scalar(operand, row)
                if value is not None:
                    return value
            return None
        case Case():
            for condition, result in scalar.branches:
                if evaluate_scalar(condition, row) is True:
                    return evaluate_scalar(result, row)
            return evaluate_scalar(scalar.otherwise, row)
        case Cast():
            value = evaluate_scalar(scalar.operand, row)
            made = None if value is None else cast_value(value, scalar.operand.type, scalar.type)
            return normal(made)
        case Call():
            return normal(_call(scalar, row))
        case Fault():
            try:
                evaluate_scalar(scalar.operand, row)
            except EvaluationError as error:
                return f"{error.code}|{error.message}"
            return None
    message = f"no evaluation of {scalar}"
    raise NotImplementedError(message)


def knows(scalar: Scalar) -> bool:
    """Return whether all functions of an expression are known here."""
    calls = [(c.function.name, len(c.arguments)) for c in walk(scalar) if isinstance(c, Call)]
    return all(
        name in _NULL_AWARE
        or name in texts.TYPED
        or not {(name, count), (name, -1)}.isdisjoint(_STRICT)
        for name, count in calls
    )


def _connective(scalar: And | Or, row: Row) -> object:
    decides = isinstance(scalar, Or)
    unknown = False
    for operand in scalar.operands:
        value = evaluate_scalar(operand, row)
        if value is decides:
            return decides
        unknown = unknown or value is None
    return None if unknown else not decides


def fits(value: object, kind: t.Type) -> object:
    """Return ``value`` as ``kind`` holds it, or raise 22003."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(kind, t.Simple) and kind in _RANGES and isinstance(value, int):
        if not -_RANGES[kind] <= value < _RANGES[kind]:
            message = f"{kind} out of range"
            raise EvaluationError(code="22003", message=message)
        return value
    if isinstance(kind, t.Numeric) and isinstance(value, Decimal | int):
        limit = Decimal(10) ** (kind.precision - kind.scale)
        rounded = Decimal(value)
        if abs(rounded) < limit:
            rounded = _CONTEXT.quantize(rounded, Decimal(1).scaleb(-kind.scale))
        if abs(rounded) >= limit:
            message = "numeric field overflow"
            raise EvaluationError(code="22003", message=message)
        return rounded
    if kind == t.REAL and isinstance(value, float) and math.isfinite(value):
        return _as_float(value, t.REAL)
    return value


def cast_value(value: Any, source: t.Type, target: t.Type) -> object:  # noqa: PLR0911, PLR0912  # one per case
    """Return ``value`` of type ``source`` as ``target``."""
    if source == target:
        return value
    if target == t.TEXT:
        return texts.text_of(value, source)
    if isinstance(source, t.Array) and isinstance(target, t.Array):
        inner = source.element, target.element
        return tuple(None if v is None else cast_value(v, *inner) for v in value)
    if source == t.TEXT:
        if target == t.JSON:
            return _json(value)
        try:
            with in_zone(DEFAULT):  # a plan says itself which zone it is in
                return fits(read_literal(value, target), target)
        except Error as error:
            raise EvaluationError(code=error.code, message=error.message) from error
    if isinstance(target, t.Numeric):
        if isinstance(value, float):
            value = f"{value:.6g}" if source == t.REAL else f"{value:.15g}"
        made = Decimal(value)
        if not made.is_finite():
            raise EvaluationError(code="22003", message="numeric field overflow")
        return fits(made, target)
    if target in _RANGES:
        if isinstance(value, Decimal):
            return fits(int(value.to_integral_value(ROUND_HALF_UP)), target)
        if isinstance(value, float):
            if not math.isfinite(value):
                message = f"{target} out of range"
                raise EvaluationError(code="22003", message=message)
            return fits(round(value), target)
        return fits(int(value), target)
    if target in t.FLOATS:
        if source == t.REAL:
            value = _single_precision(value)
        return _as_float(value, target)
    if target == t.BOOLEAN:
        return bool(value)
    if target == t.DATE and isinstance(value, datetime):
        return value.date()
    if target in {t.TIMESTAMP, t.TIMESTAMPTZ} and not isinstance(value, datetime):
        return read_literal(value.isoformat(), target)
    return read_literal(str(value), target)


def _json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        raise EvaluationError(code="22P02", message="invalid input syntax for type json") from error
    return text


def _single_precision(value: float) -> float:
    """Return exactly the number that ``value`` stands for as a real."""
    made: float = struct.unpack("f", struct.pack("f", value))[0]
    return made


def _as_float(value: Any, target: t.Type) -> float:
    exact = Decimal(value)
    made = nearest(exact, target) if exact.is_finite() else float(value)
    if exact.is_finite() and (math.isinf(made) or (made == 0) != (exact == 0)):
        what = "overflow" if math.isinf(made) else "underflow"
        raise EvaluationError(code="22003", message=f"value out of range: {what}")
    return made


def _call(scalar: Call, row: Row) -> object:
    name = scalar.function.name
    values: list[Any] = [evaluate_scalar(a, row) for a in scalar.arguments]
    _check_length(scalar, values)
    if name in _NULL_AWARE:
        return _NULL_AWARE[name](*values)
    if any(v is None for v in values):
        return None
    function = _STRICT.get((name, len(values))) or _STRICT.get((name, -1))
    if name in texts.TYPED:
        function = partial(texts.TYPED[name], [a.type for a in scalar.arguments])
    if function is None:
        message = f"no evaluation of {scalar.function}"
        raise NotImplementedError(message)
    if scalar.type == t.REAL:
        values = [_single_precision(v) if isinstance(v, float) else v for v in values]
    try:
        return fits(_in_range(name, values, function(*values)), scalar.type)
    except (model.OutOfRange, texts.Refused) as error:
        raise EvaluationError(code=error.code, message=error.message) from error
    except OverflowError as error:  # of Python's dates
        raise EvaluationError(code="22008", message="timestamp out of range") from error
    except (ZeroDivisionError, InvalidOperation) as error:
        raise EvaluationError(code="22012", message="division by zero") from error


def _in_range(name: str, values: list[Any], made: object) -> object:
    """Refuse what finite floats make that is none, or cannot be told from 0."""
    if not isinstance(made, float) or name not in {"+", "-", "*", "/"} or len(values) != 2:
        return made
    if math.isinf(made) and all(map(math.isfinite, values)):
        raise EvaluationError(code="22003", message="value out of range: overflow")
    lost = made == 0 and values[0] != 0 and name in {"*", "/"}
    if lost and (values[1] != 0 if name == "*" else not math.isinf(values[1])):
        raise EvaluationError(code="22003", message="value out of range: underflow")
    return made


def _check_length(scalar: Call, values: list[Any]) -> None:
    """Refuse what would make a value that is too long, before it is made."""
    looks = any(f.message == TOO_LONG.message for f in scalar.function.failures)
    if not looks or (scalar.function.name not in _NULL_AWARE and None in values):
        return
    if scalar.function.name == "generate_series":
        first, last, step = (*values, 1)[:3]
        counted = isinstance(step, int) and step != 0
        too_long = counted and (last - first) // step >= MAX_SERIES
    else:
        length: Callable[..., int] = _LENGTHS.get(scalar.function.name, _bytes)
        too_long = length(*values) > MAX_BYTES
    if too_long:
        raise EvaluationError(code=TOO_LONG.code, message=TOO_LONG.message)


def _bytes(*values: Any) -> int:
    """Return about how many bytes texts and arrays have."""
    return sum(
        len(v.encode()) if isinstance(v, str) else _bytes(*v) if isinstance(v, tuple) else 8
        for v in values
        if v is not None
    )


_LENGTHS: dict[str, Callable[..., int]] = {
    "repeat": lambda s, n: _bytes(s) * n,
    "replace": lambda s, a, b: _bytes(s) + (s.count(a) * (_bytes(b) - _bytes(a)) if a else 0),
}


def _times(a: Any, b: Any) -> object:
    if isinstance(b, Interval):
        a, b = b, a
    if isinstance(a, Interval):
        return model.scaled(a, lambda x: x * b)
    return _CONTEXT.multiply(a, b) if isinstance(a, Decimal) else a * b


def _divide(a: Any, b: Any) -> object:
    if isinstance(a, float) and math.isnan(a):
        return a
    if isinstance(a, Interval):
        return model.divided(a, b)
    if b == 0:
        raise EvaluationError(code="22012", message="division by zero")
    if isinstance(a, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return _CONTEXT.divide(a, b) if isinstance(a, Decimal) else a / b


def _modulo(a: Any, b: Any) -> object:
    if b == 0:
        raise EvaluationError(code="22012", message="division by zero")
    if isinstance(a, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return _CONTEXT.remainder(a, b)


def _single(value: object, rows: int | None) -> object:
    if rows is not None and rows > 1:
        message = "more than one row returned by a subquery used as an expression"
        raise EvaluationError(code="21000", message=message)
    return value


def _extreme(choose: Callable[..., object]) -> Callable[..., object]:
    def value(*values: Any) -> object:
        present = [v for v in values if v is not None]
        return choose(present, key=_in_order) if present else None

    return value


def _in_order(value: Any) -> Any:
    """Return what values are chosen by: a NULL in an array is the least."""
    if isinstance(value, tuple):
        return tuple((x is not None, None if x is None else _in_order(x)) for x in value)
    return value.span if isinstance(value, Interval) else value


def _quantified(compare: Callable[[Any, Any], object], every: bool) -> Callable[..., object]:
    """Return ``x op ANY (array)`` or ``ALL``: undecided is NULL, nothing to compare decides."""

    def value(x: Any, array: tuple[Any, ...] | None) -> object:
        if array is None:
            return None
        found = {None if x is None or y is None else bool(compare(x, y)) for y in array}
        if (not every) in found:
            return not every
        return None if None in found else every

    return value


def _ordered(compare: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """Return a comparison that takes arrays, too: element by element, NULL last, then lengths."""

    def value(a: Any, b: Any) -> object:
        if not isinstance(a, tuple):
            return compare(a, b)
        for x, y in zip(a, b, strict=False):
            if x != y:
                return compare(x is None, y is None) if x is None or y is None else compare(x, y)
        return compare(len(a), len(b))

    return value


_COMPARISONS: dict[str, Callable[[Any, Any], object]] = {
    "=": operator.eq, "<>": operator.ne, "<": _ordered(operator.lt),
    "<=": _ordered(operator.le), ">": _ordered(operator.gt), ">=": _ordered(operator.ge),
}  # fmt: skip


def _position(array: Sequence[object] | None, value: object) -> int | None:
    found = (at for at, element in enumerate(array or (), 1) if element == value)
    return next(found, None)


_NULL_AWARE: dict[str, Callable[..., object]] = {
    **{f"{o} any": _quantified(f, every=False) for o, f in _COMPARISONS.items()},
    **{f"{o} all": _quantified(f, every=True) for o, f in _COMPARISONS.items()},
    "is null": lambda x: x is None,
    "is true": lambda x: x is True,
    "is false": lambda x: x is False,
    "is distinct from": lambda a, b: a != b,
    "is not distinct from": lambda a, b: a == b,
    "nullif": lambda a, b: None if a is not None and a == b else a,
    "greatest": _extreme(max),
    "least": _extreme(min),
    "single_row": _single,
    "concat": lambda *values: "".join(v for v in values if v is not None),
    "concat_ws": texts.joined_with,
    "array": lambda *values: tuple(values),
    "array_append": lambda array, value: (*(array or ()), value),
    "array_cat": lambda a, b: b if a is None else a if b is None else a + b,
    "array_position": _position,
}


def _has_all(array: Sequence[object], wanted: Sequence[object]) -> bool:
    return all(value is not None and value in array for value in wanted)


def _has_any(array: Sequence[object], wanted: Sequence[object]) -> bool:
    return any(value is not None and value in array for value in wanted)


def _substring(text: str, start: int, length: int | None = None) -> str:
    if length is not None and length < 0:
        raise EvaluationError(code="22011", message="negative substring length not allowed")
    end = len(text) + 1 if length is None else start + length
    return text[max(start, 1) - 1 : max(end - 1, 0)]


def _like(text: str, pattern: str, flags: int = 0) -> bool:
    out, at = "", 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\" and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        else:
            out += {"%": ".*", "_": "."}.get(c) or re.escape(c)
        at += 1
    return re.fullmatch(out, text, re.DOTALL | flags) is not None


def _like_pattern(pattern: str) -> str:
    return _like_escape(pattern, "\\")


def _like_escape(pattern: str, escape: str) -> str:
    """Return a pattern with another escape character as one with backslashes."""
    out, at = "", 0
    while at < len(pattern):
        escaped = pattern[at] == escape
        at += escaped
        if at == len(pattern):
            message = "LIKE pattern must not end with escape character"
            raise EvaluationError(code="22025", message=message)
        out += ("\\" if escaped or pattern[at] == "\\" else "") + pattern[at]
        at += 1
    return out


def _series(first: Any, last: Any, step: Any = 1) -> tuple[object, ...]:
    size = step.span if isinstance(step, Interval) else step
    if size == 0:
        raise EvaluationError(code="22023", message="step size cannot equal zero")
    made: list[Any] = []
    while first <= last if size > 0 else first >= last:
        if len(made) == MAX_SERIES:
            raise EvaluationError(code=TOO_LONG.code, message=TOO_LONG.message)
        made.append(first)
        first = model.plus(first, step) if isinstance(step, Interval) else first + step
    return tuple(made)


def _plus(a: Any, b: Any) -> object:
    if isinstance(a, Interval) or isinstance(b, Interval):
        return model.plus(a, b)
    if isinstance(a, int) and isinstance(b, date):
        a, b = b, a
    if isinstance(a, date) and not isinstance(a, datetime) and isinstance(b, int):
        return a + timedelta(days=b)
    return _CONTEXT.add(a, b) if isinstance(a, Decimal) else a + b


def _minus(a: Any, b: Any) -> object:
    if isinstance(b, Interval):
        return model.plus(a, b, -1)
    if isinstance(a, datetime):
        return model.difference(a, b)
    if isinstance(a, date) and not isinstance(a, datetime):
        return a - timedelta(days=b) if isinstance(b, int) else (a - b).days
    return _CONTEXT.subtract(a, b) if isinstance(a, Decimal) else a - b


def _root(x: float) -> float:
    if x < 0:
        raise EvaluationError(code="2201F", message="cannot take square root of a negative number")
    return math.sqrt(x)


def _span(a: Any) -> object:
    if isinstance(a, tuple):
        return tuple(None if x is None else _span(x) for x in a)
    return Decimal(a.span)


def _half_up(x: Decimal) -> Decimal:
    return x.to_integral_value(ROUND_HALF_UP)


def _whole(rounding: Callable[[Any], int], x: Any) -> object:
    if isinstance(x, float):
        return float(rounding(x)) if math.isfinite(x) else x
    return Decimal(rounding(x))


def _binned(stride: Interval, source: datetime, origin: datetime) -> datetime:
    if stride.months:
        message = "timestamps cannot be binned into intervals containing months or years"
        raise EvaluationError(code="0A000", message=message)
    if stride.span <= 0:
        raise EvaluationError(code="22008", message="stride must be greater than zero")
    micros = stride.days * DAY + stride.microseconds
    if micros >= _RANGES[t.BIGINT]:
        raise EvaluationError(code="22008", message="interval out of range")
    since = (source - origin) // timedelta(microseconds=1)
    return source - timedelta(microseconds=since % micros)


def _field(field: str) -> Callable[[Any], object]:
    """Return a field of an interval, or of a date or a time."""
    return lambda a: (
        model.extracted(a, field) if isinstance(a, Interval) else Decimal(FIELDS[field](a))
    )


def _sign(x: Any) -> object:
    if isinstance(x, float):
        return 0.0 if x == 0 or math.isnan(x) else math.copysign(1, x)
    return (x > 0) - (x < 0)


_LONGER: Final = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_LONG: Final = {"quarter": (3, 0), "decade": (0, 10), "century": (0, 100), "millennium": (0, 1_000)}
"""How many months, or years, what is longer than a month or a year has."""


def _truncation(field: str) -> Callable[[Any], object]:
    """Return an interval, or a moment, without what is shorter than ``field``."""
    return lambda a: model.truncated(a, field) if isinstance(a, Interval) else _cut(a, field)


def _cut(moment: datetime, field: str) -> datetime:
    if field == "week":
        return _cut(moment, "day") - timedelta(days=moment.weekday())
    if field == "milliseconds":
        return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
    if field == "microseconds":
        return moment
    months, years = _LONG.get(field, (0, 0))
    if months:
        moment, field = moment.replace(month=(moment.month - 1) // months * months + 1), "month"
        return _cut(moment.replace(day=1), field)
    if years:
        first = 0 if field == "decade" else 1  # the first century begins with the year 1
        year = max(1, (moment.year - first) // years * years + first)
        return _cut(moment.replace(year=year, month=1, day=1), "year")
    shorter = _LONGER[_LONGER.index(field) + 1 :]
    return moment.replace(**{name: 1 if name in ("month", "day") else 0 for name in shorter})  # type: ignore[arg-type]


def _shifted(zone: str, time: datetime) -> datetime:
    """Return what clocks show at a moment, or when they show a time."""
    if time.tzinfo is None:
        return moment(time, named(_posix(zone)))
    return time.astimezone(tzinfo_of(named(_posix(zone)))).replace(tzinfo=None)


def _posix(zone: str) -> str:
    """Return an offset as PostgreSQL names it: it counts west."""
    return zone[1:] if zone[0] == "+" else zone


def _shifted_by(zone: str, at: datetime, interval: Interval, sign: int = 1) -> datetime:
    for part in (Interval(interval.months, 0, 0), Interval(0, interval.days, 0)):
        if part != Interval(0, 0, 0):
            at = _shifted(zone, model.plus(_shifted(zone, at), part, sign))
    moved: datetime = model.plus(at, Interval(0, 0, interval.microseconds), sign)
    return moved


def _cut_there(field: str) -> Callable[[str, datetime], datetime]:
    def cut(zone: str, at: datetime) -> datetime:
        local = _shifted(zone, at)
        return at - (local - _cut(local, field))

    return cut


def _milliseconds(time: Any) -> int:
    if isinstance(time, int):
        return time
    if not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day, tzinfo=UTC)
    moment = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    since: timedelta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(milliseconds=1)


_STRICT: dict[tuple[str, int], Callable[..., object]] = {
    ("+", 2): _plus,
    ("-", 2): _minus,
    ("*", 2): _times,
    ("/", 2): _divide,
    ("%", 2): _modulo,
    ("mod", 2): _modulo,
    ("-", 1): lambda a: model.negated(a) if isinstance(a, Interval) else -a,
    ("abs", 1): abs,
    **{(symbol, 2): compare for symbol, compare in _COMPARISONS.items()},
    ("not", 1): operator.not_,
    ("mz_timestamp", 1): _milliseconds,
    ("date_bin", 3): _binned,
    ("||", -1): lambda *texts: "".join(texts),
    ("length", 1): len,
    ("char_length", 1): len,
    ("reverse", 1): lambda s: s[::-1],
    ("repeat", 2): operator.mul,
    ("replace", 3): lambda s, a, b: s.replace(a, b) if a else s,
    ("left", 2): lambda s, n: s[:n],
    ("right", 2): lambda s, n: s[max(len(s) - n, 0) :] if n >= 0 else s[-n:],
    ("btrim", 1): lambda s: s.strip(" "),
    ("btrim", 2): lambda s, c: s.strip(c),
    ("ltrim", 1): lambda s: s.lstrip(" "),
    ("rtrim", 1): lambda s: s.rstrip(" "),
    ("strpos", 2): lambda s, x: s.find(x) + 1,
    ("starts_with", 2): lambda s, x: s.startswith(x),
    ("substring", 2): _substring,
    ("substring", 3): _substring,
    ("like", 2): _like,
    ("ilike", 2): lambda s, p: _like(s, p, re.IGNORECASE),
    ("like pattern", 1): _like_pattern,
    ("like escape", 2): _like_escape,
    ("sqrt", 1): _root,
    ("sign", 1): _sign,
    ("floor", 1): lambda x: _whole(math.floor, x),
    ("ceil", 1): lambda x: _whole(math.ceil, x),
    ("subscript", 2): lambda a, i: a[i - 1] if 0 < i <= len(a) else None,
    ("cardinality", 1): len,
    ("generate_series", 2): _series,
    ("generate_series", 3): _series,
    **{(f"extract {f}", 1): _field(f) for f in {**interval.EXTRACT_FIELDS, **FIELDS}},
    **{(f"date_trunc {f}", 1): _truncation(f) for f in (*interval.TRUNC_FIELDS, "week")},
    ("make_date", 3): made_date,
    ("round", 1): lambda x: _whole(round, x) if isinstance(x, float) else _half_up(x),
    (NAME, 1): _span,
    ("age", 2): model.age,
    ("justify_hours", 1): lambda a: model.justified(a, hours=True, days=False),
    ("justify_days", 1): lambda a: model.justified(a, hours=False, days=True),
    ("justify_interval", 1): lambda a: model.justified(a, hours=True, days=True),
    ("timezone", 2): _shifted,
    ("zoned text", 2): lambda zone, at: local_text(at, named(_posix(zone))),
    ("zoned +", 3): _shifted_by,
    ("zoned -", 3): lambda zone, at, by: _shifted_by(zone, at, by, -1),
    **{(f"zoned date_trunc {field}", 2): _cut_there(field) for field in CUT},
    ("~", 2): lambda s, pattern: re.search(pattern, s) is not None,
    ("&", 2): operator.and_,
    ("|", 2): operator.or_,
    ("#", 2): operator.xor,
    ("~", 1): operator.invert,
    ("@>", 2): _has_all,
    ("&&", 2): _has_any,
    **texts.STRICT,
}
