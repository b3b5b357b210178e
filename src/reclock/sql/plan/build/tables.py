"""Functions in FROM: each is an array to unnest, whose elements become rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported, WrongType
from reclock.sql.plan.build.functions import check_regex
from reclock.sql.plan.coerce import convert, to_common
from reclock.sql.plan.functions.length import MAX_SERIES, SPLIT, TOO_LONG, within
from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.scalar import Call, Scalar
from reclock.sql.types import (
    BIGINT,
    DATE,
    INTEGER,
    INTEGERS,
    INTERVAL,
    JSON,
    MONTHS,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Array,
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
_SECONDS = (
    "(extract(DAY FROM {2}) * 86400D + extract(HOUR FROM {2}) * 3600D"
    " + extract(MINUTE FROM {2}) * 60D + double(extract(SECOND FROM {2})))"
)
_YEARS = "CAST({2} AS INTERVAL YEAR TO MONTH)"
_MONTHS = f"((extract(YEAR FROM {_YEARS}) * 12D + extract(MONTH FROM {_YEARS})) * 2419200D)"
_BETWEEN = (
    "(double(unix_micros(CAST({1} AS TIMESTAMP))) - double(unix_micros(CAST({0} AS TIMESTAMP))))"
    " / 1000000D"
)
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
    if first.type not in {TIMESTAMP, TIMESTAMPTZ} or step.type not in {INTERVAL, MONTHS}:
        message = f"generate_series over {first.type} by {step.type} is not supported"
        hint = "it takes integers by an integer, or timestamps by an interval"
        raise NotSupported(message, hint=hint)
    zero = "INTERVAL '0' SECOND" if step.type == INTERVAL else "INTERVAL '0' MONTH"
    length = _SECONDS if step.type == INTERVAL else _MONTHS
    return _stepped([first, last, step], Array(first.type), zero, f"{_BETWEEN} / {length}")


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
