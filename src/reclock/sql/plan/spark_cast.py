"""Conversions as Spark SQL text with PostgreSQL's meaning.

Where they differ: PostgreSQL rounds when a number becomes an integer (halves away from
zero for numeric, to even for floating point), Spark truncates; PostgreSQL writes
timestamps with their zone. Values that do not fit become NULL here and an error beside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.scalar import cast_can_fail
from reclock.sql.plan.spark_literal import quote_string
from reclock.sql.types import (
    BYTEA,
    FLOATS,
    INTEGERS,
    JSON,
    TEXT,
    TIMESTAMPTZ,
    UNKNOWN,
    Numeric,
    is_number,
)

if TYPE_CHECKING:
    from reclock.sql.types import Type

_MAX_DIGITS: Final = 4096
"""A text of more is no number: reading one takes the square of its length."""

_QUOTED: Final = 1024
"""How much of a text an error quotes."""


def cast_text(value: str, source: Type, target: Type) -> str:  # noqa: PLR0911  # one per case
    """Return text for ``value`` as ``target``; NULL where there is no such value."""
    name = target.spark_name
    if source in {target, UNKNOWN}:
        return f"CAST({value} AS {name})"
    if target in INTEGERS and isinstance(source, Numeric):
        return f"try_cast(round({value}, 0) AS {name})"
    if target in INTEGERS and source in FLOATS:
        return f"try_cast(rint({value}) AS {name})"
    if target == JSON:
        return f"CASE WHEN try_parse_json({value}) IS NOT NULL THEN {value} END"
    if target == TEXT:
        return _to_text(value, source)
    word = "try_cast" if cast_can_fail(source, target) else "CAST"
    if source == TEXT and is_number(target):
        return (
            f"CASE WHEN octet_length({value}) <= {_MAX_DIGITS} THEN {word}({value} AS {name}) END"
        )
    return f"{word}({value} AS {name})"


def _to_text(value: str, source: Type) -> str:
    if source == JSON:
        return value
    if source == TIMESTAMPTZ:
        return f"concat(CAST({value} AS STRING), '+00')"
    if source == BYTEA:
        return f"concat('\\\\x', lower(hex({value})))"
    if source in FLOATS:
        return f"regexp_replace(CAST({value} AS STRING), '\\\\.0$', '')"
    return f"CAST({value} AS STRING)"


def cast_failure(value: str, source: Type, target: Type) -> str:
    """Return text for the error of a ``value`` that has no counterpart."""
    if source == TEXT:
        start = quote_string(f'22P02|invalid input syntax for type {target}: "')
        return f"concat({start}, left({value}, {_QUOTED}), '\"')"
    if is_number(source) and is_number(target):
        what = "numeric field overflow" if isinstance(target, Numeric) else f"{target} out of range"
        return quote_string(f"22003|{what}")
    return quote_string(f"22P02|cannot cast {source} to {target}")
