"""Functions in FROM: each is an array to unnest, whose elements become rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported, WrongType
from reclock.interval import DAY
from reclock.sql.plan.build.functions import check_regex
from reclock.sql.plan.coerce import convert, to_common
from reclock.sql.plan.functions.interval import micros_of, moved
from reclock.sql.plan.functions.length import MAX_SERIES, SPLIT, TOO_LONG, within
from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.interval_text import key_text
from reclock.sql.plan.scalar import Call, Scalar
from reclock.sql.types import (
    BIGINT,
    DATE,
    INTEGER,
    INTEGERS,
    INTERVAL,
    JSON,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Array,
    Type,
)

if TYPE_CHECKING:
    from reclock.sql.syntax.query import TableFunction

_ZERO = Failure("22023", "step size cannot equal zero")
_EMPTY = "CAST(array() AS {type})"
_FORWARD = (
    f"CASE WHEN {{0}} > {{1}} THEN {_EMPTY}"
    f" WHEN double({{1}}) - double({{0}}) < {MAX_SERIES} THEN sequence({{0}}, {{1}}, 1) END"
)
_STEPPED = (
    "CASE WHEN ({2} > {zero} AND {0} > {1}) OR ({2} < {zero} AND {0} < {1}) OR {2} = {zero}"
    f" THEN {_EMPTY} WHEN {{steps}} < {MAX_SERIES} THEN sequence({{0}}, {{1}}, {{2}}) END"
)
_MONTH_STEPS = 10_000
"""A series by months has no more: each is the one before plus the step, as in PostgreSQL."""

_NOT_AN_ARRAY = Failure("22023", "cannot extract elements from a scalar or an object")


def table_function(item: TableFunction, arguments: tuple[Scalar, ...]) -> Scalar:
    """Return the array that ``item`` unnests."""
    match item.name, len(arguments):
        case "generate_series", 2 | 3:
            return _series(arguments)
        case "unnest", 1:
            if not isinstance(arguments[0].type, Array):
                message = f"unnest needs an array, not {arguments[0].type}"
                raise WrongType(message, code="42883", position=item.position)
            return arguments[0]
        case (("json_array_elements" | "jsonb_array_elements"), 1):
            return _elements(arguments[0], JSON, "to_json(x)")
        case (("json_array_elements_text" | "jsonb_array_elements_text"), 1):
            return _elements(arguments[0], TEXT, "CAST(x AS STRING)")
        case "regexp_split_to_table", 2:
            check_regex(arguments[1], item.position)
            kind = Array(TEXT)
            text = within(SPLIT, "split({0}, {1}, -1)")
            split = Overload("regexp_split", (TEXT, TEXT), kind, text, (TOO_LONG,))
            return Call(split, tuple(convert(a, TEXT) for a in arguments), kind)
    message = f"table function {item.name} with {len(arguments)} arguments is not supported"
    hint = "supported: generate_series, unnest, json_array_elements[_text], regexp_split_to_table"
    raise NotSupported(message, hint=hint, position=item.position)


def _series(arguments: tuple[Scalar, ...]) -> Scalar:
    first, last = to_common(arguments[:2], "generate_series")
    step = arguments[2] if len(arguments) == 3 else None
    if first.type in INTEGERS:
        kind = first.type if first.type != INTEGERS[0] else INTEGER
        values = [convert(a, kind) for a in (first, last)]
        if step is None:
            made = Overload("generate_series", (kind, kind), Array(kind), _FORWARD, (TOO_LONG,))
            return Call(made, tuple(values), Array(kind))
        values.append(convert(step, kind))
        steps = "(double({1}) - double({0})) / double({2})"
        return _stepped(values, Array(kind), "0L" if kind == BIGINT else "0", steps)
    if step is None:
        message = f"generate_series over {first.type} needs a step"
        raise WrongType(message, code="42883")
    if step.type == UNKNOWN:
        step = convert(step, INTERVAL)
    if first.type == DATE:
        first, last = convert(first, TIMESTAMPTZ), convert(last, TIMESTAMPTZ)
    if first.type not in {TIMESTAMP, TIMESTAMPTZ} or step.type != INTERVAL:
        message = f"generate_series over {first.type} by {step.type} is not supported"
        hint = "it takes integers by an integer, or timestamps by an interval"
        raise NotSupported(message, hint=hint)
    series = Array(first.type)
    text = _times(first.type)
    failure = Failure(_ZERO.code, _ZERO.message, f"{key_text('{2}', INTERVAL)} = 0")
    parameters = (first.type, first.type, INTERVAL)
    made = Overload("generate_series", parameters, series, text, (failure, TOO_LONG))
    return Call(made, (first, last, step), series)


def _times(kind: Type) -> str:
    """Return a series of times; NULL if it is too long."""
    forward = f"{key_text('{2}', INTERVAL)} > 0"
    step = f"try_add(bigint({{2}}.days) * {DAY}, {{2}}.micros)"
    start, stop = micros_of("{0}", kind), micros_of("{1}", kind)
    back = (
        "timestamp_micros(%s)"
        if kind == TIMESTAMPTZ
        else ("CAST(timestamp_micros(%s) AS TIMESTAMP_NTZ)")
    )
    count = f"try_divide(double({stop}) - double({start}), double({step}))"
    even = (
        f"CASE WHEN {count} < 0 THEN {_EMPTY} WHEN {count} < {MAX_SERIES}"
        f" THEN transform(sequence(0L, ({stop} - {start}) div {step}),"
        f" n -> {back % f'{start} + n * {step}'}) END"
    )
    past = f"(a.c IS NULL OR CASE WHEN {forward} THEN a.c > {{1}} ELSE a.c < {{1}} END)"
    # Spark compares the types of both structs to the letter, whichever way an operand was made.
    kept = "CAST(%s AS TIMESTAMP)" if kind == TIMESTAMPTZ else "CAST(%s AS TIMESTAMP_NTZ)"
    following = kept % moved("a.c", "{2}.months", "{2}.days", "{2}.micros")
    grown = f"named_struct('l', array_append(a.l, a.c), 'c', {following})"
    uneven = (
        f"aggregate(sequence(0, {_MONTH_STEPS}), named_struct('l', {_EMPTY}, 'c', {kept % '{0}'}),"
        f" (a, n) -> CASE WHEN {past} THEN a ELSE {grown} END,"
        f" a -> CASE WHEN {past} AND a.c IS NOT NULL THEN a.l END)"
    )
    return f"CASE WHEN {{2}}.months = 0 THEN {even} ELSE {uneven} END"


def _stepped(values: list[Scalar], kind: Array, zero: str, steps: str) -> Scalar:
    text = _STEPPED.replace("{zero}", zero).replace("{steps}", steps)
    failure = Failure(_ZERO.code, _ZERO.message, f"{{2}} = {zero}")
    parameters = tuple(v.type for v in values)
    made = Overload("generate_series", parameters, kind, text, (failure, TOO_LONG))
    return Call(made, tuple(values), kind)


def _elements(argument: Scalar, element: object, text: str) -> Scalar:
    kind = Array(JSON if element == JSON else TEXT)
    spark = f"transform(try_cast(try_parse_json({{0}}) AS ARRAY<VARIANT>), x -> {text})"
    name = "json_array_elements" + ("" if element == JSON else "_text")
    made = Overload(name, (JSON,), kind, spark, (_NOT_AN_ARRAY,))
    return Call(made, (convert(argument, JSON),), kind)
