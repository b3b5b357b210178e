"""Calls and operators: finding the function, converting the arguments."""

from __future__ import annotations

import re
from itertools import groupby
from zoneinfo import available_timezones

from reclock.errors import InvalidDefinition, NotSupported, StatementError, WrongType
from reclock.sql.plan.build.array_call import array_call
from reclock.sql.plan.build.like import like_pattern
from reclock.sql.plan.coerce import convert, exact, to_common, to_meet
from reclock.sql.plan.comparable import check_order, compared, comparison_key
from reclock.sql.plan.functions import FORBIDDEN, find_function, interval, parameters_of
from reclock.sql.plan.functions.datetime import EXTRACT_FIELDS, TRUNC_FIELDS
from reclock.sql.plan.functions.length import adds_little
from reclock.sql.plan.functions.overload import AnyOf
from reclock.sql.plan.functions.structure import BOOLEANS
from reclock.sql.plan.functions.text import SHORT
from reclock.sql.plan.interval_text import has_interval
from reclock.sql.plan.scalar import NULL, Call, Case, Cast, Coalesce, Literal, Scalar
from reclock.sql.plan.temporal import FORM, is_now
from reclock.sql.plan.zoned import call_there, is_zoned
from reclock.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DATETIMES,
    DOUBLE,
    FLOATS,
    INTEGERS,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Array,
    Numeric,
    Type,
    adjusted,
    as_numeric,
    is_number,
    wider_number,
)

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
_ORDERING = ("<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%")
_SAME_TYPE = (*COMPARISONS, "nullif", "greatest", "least")
_BY_BYTES = ("array_position", "array_contains", "array_to_string", "@>", "&&")
_QUOTIENT_SCALE = 16
_FIELD_NAMES = {"centuries": "century", "millennia": "millennium"}
_CHAR_PATTERNS = (
    ("YYYY", "yyyy"), ("MM", "MM"), ("DDD", "DDD"), ("DD", "dd"), ("HH24", "HH"), ("HH12", "hh"),
    ("HH", "hh"),
    ("MI", "mm"), ("SS", "ss"), ("MS", "SSS"), ("US", "SSSSSS"), ("AM", "a"), ("PM", "a"),
    ("FMMonth", "MMMM"), ("Mon", "MMM"),
)  # fmt: skip

_REFUSED = ("SSSS", "Month", '"', "\\")
"""What PostgreSQL means by them has no counterpart: seconds of a day, a padded name, quotes."""

_LITERAL = "\0"
"""Begins a character that stands for itself; no text has it."""


_LONG = {"timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone"}


def _long_name(kind: Type) -> str:
    """Return a type as PostgreSQL writes it out."""
    if isinstance(kind, Array):
        return f"{_long_name(kind.element)}[]"
    return "numeric" if isinstance(kind, Numeric) else _LONG.get(str(kind), str(kind))


def call(  # noqa: PLR0911, PLR0912, PLR0915 - one line per function with rules of its own
    name: str,
    arguments: tuple[Scalar, ...],
    position: int | None = None,
    *,
    maintained: bool = False,
) -> Scalar:
    """Return ``name(arguments)`` with the conversions it needs."""
    if name in FORBIDDEN:
        message = f"function {name} is not allowed: its result is not a function of the data"
        hint = "give the value as a parameter, or store it in a table"
        raise InvalidDefinition(message, hint=hint, position=position)
    if name == "pg_typeof" and len(arguments) == 1:
        return Literal(_long_name(arguments[0].type), TEXT)
    if name == "coalesce":
        operands = to_common(arguments, "COALESCE")
        return operands[0] if len(operands) == 1 else Coalesce(operands)
    if name in {"extract", "date_part", "date_trunc"}:
        name, arguments = _with_field(name, arguments, position)
    if name in {"like", "ilike"}:
        arguments = (arguments[0], like_pattern(arguments[1], position))
    if name in {"~", "~*"} and len(arguments) == 2:
        check_regex(arguments[1], position)
    if name == "timezone" and arguments:
        _check_zone(arguments[0], position)
    if name == "round" and len(arguments) == 2 and arguments[0].type != DOUBLE:
        return _rounded(*arguments, position)
    if name == "to_char":
        arguments = (arguments[0], _pattern(arguments[1], position))
    if name in COMPARISONS and any(map(is_now, arguments)):
        arguments = tuple(a if is_now(a) else as_time(a, position) for a in arguments)
    if name == "nullif" and len(arguments) == 2 and _keeps_first(*arguments):
        equal = call("=", arguments, position)
        return Case(((equal, Literal(None, arguments[0].type)),), arguments[0])
    if name in _SAME_TYPE:
        several = name in {"greatest", "least"} or len(arguments) != 2
        arguments = (to_common if several else to_meet)(arguments, name.upper())
        if name in _ORDERING or name in {"greatest", "least"}:
            check_order(arguments[0].type)
        if name in COMPARISONS:
            arguments = tuple(map(comparison_key, arguments))
        else:
            chosen = compared(name, arguments)
            if chosen is not None:
                return chosen
    name, arguments = array_call(name, arguments, position)
    if name in _BY_BYTES and any(has_interval(a.type) for a in arguments):
        arguments = _compared_array(name, arguments, position)
    if name in _ARITHMETIC and len(arguments) == 2:
        arguments = _numbers(name, *arguments)
    if name == "||":
        arguments = _concatenation(arguments)
    there = call_there(name, arguments)
    if isinstance(there, Scalar):
        return there
    name, arguments = there
    found = find_function(name, tuple(a.type for a in arguments), position)
    if found.volatile and maintained:
        message = f"{name}() is not allowed in a maintained view"
        hint = f"filter by mz_now(), as in {FORM}; docs/temporal-filters.md has more"
        raise InvalidDefinition(message, hint=hint, position=position)
    parameters = parameters_of(found, len(arguments))
    converted = tuple(_as_parameter(a, p) for a, p in zip(arguments, parameters, strict=True))
    if name in {"concat", "concat_ws"}:
        converted = tuple(_written(a) for a in converted)
    if name == "array_to_string":
        converted = (_texts(converted[0]), *converted[1:])
    if name == "||":
        converted = tuple(part for a in converted for part in _operands(a))
    if name in SHORT and adds_little(converted):
        found = SHORT[name]
    return Call(found, converted, found.result_type(tuple(a.type for a in converted)))


def _compared_array(
    name: str, arguments: tuple[Scalar, ...], position: int | None
) -> tuple[Scalar, ...]:
    """Return the arguments of a function that looks for elements, as what they are compared by."""
    if name == "array_to_string" or len(arguments) != 2:
        message = f"{name} of intervals is not supported"
        raise NotSupported(message, hint="cast the array first: array::text[]", position=position)
    array, other = arguments
    if isinstance(array.type, Array) and not isinstance(other.type, Array):
        other = convert(other, array.type.element)
    elif isinstance(array.type, Array):
        array, other = to_common(arguments, name)
    return comparison_key(array), comparison_key(other)


def as_time(scalar: Scalar, position: int | None = None) -> Scalar:
    """Return what ``mz_now()`` is compared with as milliseconds, rounded down."""
    if scalar.type == UNKNOWN:
        number = isinstance(scalar, Literal) and str(scalar.value).lstrip("-").isdigit()
        scalar = convert(scalar, BIGINT if number or scalar == NULL else TIMESTAMPTZ)
    if scalar.type in INTEGERS:
        return convert(scalar, BIGINT)
    if scalar.type in {DATE, TIMESTAMP} and is_zoned():
        scalar = convert(scalar, TIMESTAMPTZ)
    if scalar.type not in DATETIMES:
        message = f"mz_now() cannot be compared with type {scalar.type}"
        hint = "compare it with a timestamp, a date, or milliseconds as bigint; you may need a cast"
        raise WrongType(message, hint=hint, position=position)
    found = find_function("mz_timestamp", (scalar.type,), position)
    return Call(found, (scalar,), BIGINT)


def _as_parameter(argument: Scalar, parameter: object) -> Scalar:
    if isinstance(parameter, AnyOf):
        if argument.type == UNKNOWN:
            return convert(argument, TEXT)
        if parameter.name == "numeric" and not isinstance(argument.type, Numeric):
            return convert(argument, as_numeric(argument.type))
        return argument
    return convert(argument, parameter)  # type: ignore[arg-type]  # the rest are types


def _keeps_first(a: Scalar, b: Scalar) -> bool:
    """Return whether NULLIF has the type of its first argument: their types compare as they are."""
    families = (INTEGERS, FLOATS, DATETIMES)
    return a.type != b.type and any(a.type in f and b.type in f for f in families)


def _numbers(symbol: str, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """Give two numbers the types in which they meet; decimals keep their own precision."""
    a, b = exact((a, b))
    if a.type == UNKNOWN and is_number(b.type):
        a = convert(a, b.type)
    if b.type == UNKNOWN and is_number(a.type):
        b = convert(b, a.type)
    if not (is_number(a.type) and is_number(b.type)):
        return a, b
    meet = wider_number(a.type, b.type)
    if not isinstance(meet, Numeric):
        return convert(a, meet), convert(b, meet)
    x, y = as_numeric(a.type), as_numeric(b.type)
    if symbol == "/" and x.scale + y.precision + 1 < _QUOTIENT_SCALE:
        scale = _QUOTIENT_SCALE - y.precision - 1
        whole = x.precision - x.scale
        x = Numeric(min(whole + scale, 38), scale)
    return convert(a, x), convert(b, y)


def _concatenation(arguments: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    if not any(a.type in {TEXT, UNKNOWN} for a in arguments):
        return arguments
    return tuple(convert(a, TEXT) for a in arguments)


def _written(scalar: Scalar) -> Scalar:
    """Return a value as the text that is shown of it: of true t, which a cast makes ``true``."""
    if scalar.type == BOOLEAN:
        yes, no = (Literal(letter, TEXT) for letter in "tf")
        known = find_function("is null", (BOOLEAN,))
        missing = Call(known, (scalar,), BOOLEAN)
        return Case(((missing, Literal(None, TEXT)), (scalar, yes)), no)
    return convert(scalar, TEXT)


def _texts(array: Scalar) -> Scalar:
    """Return an array with its elements as the texts that are shown of them."""
    kind = array.type
    if isinstance(kind, Array) and isinstance(kind.element, Array):
        message = "array_to_string of an array of arrays is not supported"
        raise NotSupported(message, hint="use unnest and string_agg")
    if isinstance(kind, Array) and kind.element == BOOLEAN:
        return Call(BOOLEANS, (array,), Array(TEXT))
    return convert(array, Array(TEXT))


def _operands(scalar: Scalar) -> tuple[Scalar, ...]:
    """Return the texts that ``||`` puts side by side: its length is looked at once for all."""
    is_chain = isinstance(scalar, Call) and scalar.function.name == "||"
    return scalar.arguments if is_chain else (scalar,)  # type: ignore[union-attr]


def _with_field(
    name: str, arguments: tuple[Scalar, ...], position: int | None
) -> tuple[str, tuple[Scalar, ...]]:
    field = arguments[0] if arguments else None
    if len(arguments) != 2 or not isinstance(field, Literal) or not isinstance(field.value, str):
        message = f"{name} needs its field as a literal"
        hint = "write it as a literal, such as 'year'; CASE chooses between several"
        raise NotSupported(message, hint=hint, position=position)
    unit = field.value.lower()
    of_interval = arguments[1].type == INTERVAL
    known: tuple[str, ...]
    if name == "date_trunc":
        known = interval.TRUNC_FIELDS if of_interval else TRUNC_FIELDS
    else:
        known = tuple(interval.EXTRACT_FIELDS) if of_interval else (*EXTRACT_FIELDS, "epoch")
    unit = _FIELD_NAMES.get(unit, unit)
    chosen = next((k for k in known if unit in {k, k + "s", k.removesuffix("s")}), None)
    if chosen is None:
        message = f'unit "{unit}" is not supported for {name}'
        hint = f"supported: {', '.join(known)}"
        raise NotSupported(message, hint=hint, position=position)
    value = arguments[1]
    if value.type == DATE and name == "date_trunc":
        value = convert(value, TIMESTAMPTZ)
    return ("date_trunc" if name == "date_trunc" else "extract") + " " + chosen, (value,)


def _rounded(value: Scalar, digits: Scalar, position: int | None) -> Scalar:
    """Return round(numeric, digits): a conversion to a numeric of that many digits."""
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or digits.value < 0:
        message = "round to a number of digits that is not a literal of 0 or more is not supported"
        hint = "write the digits as a literal, or round(x * power(10, n)) / power(10, n)"
        raise NotSupported(message, hint=hint, position=position)
    kind = as_numeric(value.type)
    if digits.value >= kind.scale:
        return convert(value, kind)
    return Cast(
        convert(value, kind), adjusted(kind.precision - kind.scale + 1 + digits.value, digits.value)
    )


def _text_literal(scalar: Scalar, what: str, position: int | None) -> str:
    if not isinstance(scalar, Literal) or not isinstance(scalar.value, str):
        message = f"{what} that is not a literal is not supported"
        hint = "write it as a literal; LIKE, starts_with and strpos take any text"
        raise NotSupported(message, hint=hint, position=position)
    return scalar.value


def check_regex(pattern: Scalar, position: int | None) -> None:
    """Refuse a regular expression that could fail while rows are processed."""
    text = _text_literal(pattern, "a regular expression", position)
    try:
        re.compile(text)
    except re.error as error:
        message = f"invalid regular expression: {error}"
        hint = "it is written as in Python and Java: escape ( ) [ ] . * + ? with a backslash"
        raise StatementError(message, code="2201B", hint=hint, position=position) from error


def _check_zone(zone: Scalar, position: int | None) -> None:
    name = _text_literal(zone, "a time zone", position)
    if name.upper() not in {"UTC", "GMT"} and name not in available_timezones():
        message = f'time zone "{name}" not recognized'
        raise StatementError(message, code="22023", position=position)


def _pattern(pattern: Scalar, position: int | None) -> Scalar:
    """Translate a literal to_char pattern to Spark's."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        message = "to_char needs its pattern as a literal"
        hint = "write it as a literal, such as 'YYYY-MM-DD'; CASE chooses between several"
        raise NotSupported(message, hint=hint, position=position)
    text, out = pattern.value, []
    while text:
        if text.startswith(_REFUSED):
            raise _no_pattern(pattern.value, position)
        for theirs, ours in _CHAR_PATTERNS:
            if text.startswith(theirs):
                out.append(ours)
                text = text[len(theirs) :]
                break
        else:
            if text[0].isalpha():
                raise _no_pattern(pattern.value, position)
            out.append(_LITERAL + text[0])
            text = text[1:]
    quoted = [
        "'" + "".join(run).replace(_LITERAL, "").replace("'", "''") + "'"
        if literal
        else "".join(run)
        for literal, run in groupby(out, lambda part: part.startswith(_LITERAL))
    ]
    return Literal("".join(quoted), TEXT)


def _no_pattern(pattern: str, position: int | None) -> NotSupported:
    message = f'to_char pattern "{pattern}" is not supported'
    hint = "supported: YYYY MM Mon FMMonth DD DDD HH24 HH12 MI SS MS US AM, and signs between them"
    return NotSupported(message, hint=hint, position=position)


def truth(scalar: Scalar, where: str) -> Scalar:
    """Return ``scalar`` as a boolean, or say that ``where`` needs one."""
    if scalar.type == UNKNOWN:
        return convert(scalar, BOOLEAN)
    if scalar.type != BOOLEAN:
        message = f"argument of {where} must be type boolean, not type {scalar.type}"
        raise WrongType(message, hint="write a comparison, such as … <> 0 or … IS NOT NULL")
    return scalar
