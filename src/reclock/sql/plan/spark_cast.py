"""Conversions as Spark SQL text with PostgreSQL's meaning.

Where they differ: PostgreSQL rounds when a number becomes an integer (halves away from zero for
numeric, to even for floating point), Spark truncates; PostgreSQL writes timestamps with their zone.
Values that do not fit become NULL here, and an error in the other text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.date_text import rounding_text
from reclock.sql.plan.interval_text import READER, to_text
from reclock.sql.plan.scalar import cast_can_fail
from reclock.sql.plan.spark_float import (
    double_as_real,
    double_as_real_failure,
    float_as_text,
    text_as_float,
    text_as_float_failure,
)
from reclock.sql.plan.spark_literal import quote_string
from reclock.sql.plan.spark_output import array_as_text, record_as_text
from reclock.sql.plan.spark_read import (
    text_as_boolean,
    text_as_integer_failure,
    text_as_numeric_failure,
)
from reclock.sql.types import (
    BOOLEAN,
    BYTEA,
    DOUBLE,
    FLOATS,
    INTEGERS,
    INTERVAL,
    JSON,
    REAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Array,
    Numeric,
    Record,
    is_number,
)

if TYPE_CHECKING:
    from reclock.sql.types import Type

_MAX_DIGITS: Final = 4096
"""A text of more is no number: reading one takes the square of its length."""

_QUOTED: Final = 1024
"""How much of a text an error quotes."""


def cast_text(  # noqa: PLR0911, PLR0912  # one per case
    value: str, source: Type, target: Type
) -> str:
    """Return text for ``value`` as ``target``; NULL where there is no such value."""
    name = target.spark_name
    if source in {target, UNKNOWN}:
        return f"CAST({value} AS {name})"
    if target in INTEGERS and isinstance(source, Numeric):
        return f"try_cast(round({value}, 0) AS {name})"
    if target in INTEGERS and source in FLOATS:
        return f"try_cast(rint({value}) AS {name})"
    if isinstance(source, Array) and isinstance(target, Array):
        return _array(value, source, target)
    if target in FLOATS and source == TEXT:
        return text_as_float(value, target)
    if (source, target) == (DOUBLE, REAL):
        return double_as_real(value)
    if isinstance(target, Numeric) and source in FLOATS:
        figures = "%.5e" if source == REAL else "%.14e"  # as many as PostgreSQL takes
        return f"try_cast(format_string('{figures}', {value}) AS {name})"
    if (source, target) == (TEXT, BOOLEAN):
        return text_as_boolean(value)
    if target == JSON:
        # Spark stops after the first value ("1 day"): only one that is whole fits both of these.
        element = f"try_parse_json(concat('[', {value}, ']'))"
        member = f"try_parse_json(concat(char(123), '\"a\":', {value}, char(125)))"
        return f"CASE WHEN {element} IS NOT NULL AND {member} IS NOT NULL THEN {value} END"
    if target == TEXT:
        return _to_text(value, source)
    if target == INTERVAL:
        return f"{READER}({value})"
    if source == TEXT and target in {TIMESTAMP, TIMESTAMPTZ}:
        return f"(try_cast({value} AS {name}) + {rounding_text(value)})"
    word = "try_cast" if cast_can_fail(source, target) else "CAST"
    if source == TEXT and is_number(target):
        return (
            f"CASE WHEN octet_length({value}) <= {_MAX_DIGITS} THEN {word}({value} AS {name}) END"
        )
    return f"{word}({value} AS {name})"


def _array(value: str, source: Array, target: Array) -> str:
    """Return text for an array of another type; NULL if an element has no such value."""
    made = cast_text("__e", source.element, target.element)
    each = f"transform({value}, __e -> {made})"
    if not cast_can_fail(source, target):
        return each
    bad = f"exists({value}, __e -> __e IS NOT NULL AND {made} IS NULL)"
    return f"CASE WHEN NOT {bad} THEN {each} END"


def _array_failure(value: str, source: Array, target: Array) -> str:
    """Return text for the error of the first element that has no counterpart."""
    made = cast_text("__e", source.element, target.element)
    failure = cast_failure("__e", source.element, target.element)
    errors = f"transform({value}, __e -> CASE WHEN {made} IS NULL THEN {failure} END)"
    return f"get(filter({errors}, __f -> __f IS NOT NULL), 0)"


def _to_text(value: str, source: Type) -> str:  # noqa: PLR0911  # one per case
    if source == JSON:
        return value
    if source == TIMESTAMPTZ:
        return f"concat(CAST({value} AS STRING), '+00')"
    if source == BYTEA:
        return f"concat('\\\\x', lower(hex({value})))"
    if source == INTERVAL:
        return to_text(value)
    if source in FLOATS:
        return float_as_text(value, source)
    if isinstance(source, Array):
        return array_as_text(value, source.element, written)
    if isinstance(source, Record):
        return record_as_text(value, source.fields, written)
    return f"CAST({value} AS STRING)"


def written(value: str, source: Type) -> str:
    """Return text for what PostgreSQL's output function writes: t for true, not ``true``."""
    if source == BOOLEAN:
        return f"CASE WHEN {value} THEN 't' WHEN NOT {value} THEN 'f' END"
    return value if source == TEXT else _to_text(value, source)


def cast_failure(value: str, source: Type, target: Type) -> str:  # noqa: PLR0911  # one per case
    """Return text for the error of a ``value`` that has no counterpart."""
    if isinstance(source, Array) and isinstance(target, Array):
        return _array_failure(value, source, target)
    if source == TEXT and target in FLOATS:
        return text_as_float_failure(value, target)
    if (source, target) == (DOUBLE, REAL):
        return double_as_real_failure(value)
    if source == TEXT and target in INTEGERS:
        return text_as_integer_failure(value, target)
    if source == TEXT and isinstance(target, Numeric):
        return text_as_numeric_failure(value, target)
    if source == TEXT:
        code = "22007" if target == INTERVAL else "22P02"
        start = quote_string(f'{code}|invalid input syntax for type {target}: "')
        return f"concat({start}, left({value}, {_QUOTED}), '\"')"
    if is_number(source) and is_number(target):
        what = "numeric field overflow" if isinstance(target, Numeric) else f"{target} out of range"
        return quote_string(f"22003|{what}")
    return quote_string(f"22P02|cannot cast {source} to {target}")
