"""Texts as booleans and whole numbers, in Spark SQL: which are values, and which error others are.

A text that is a number but none of the type is 22003, one that is no number 22P02.

Tests: tests/functions/test_net.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.spark_literal import quote_string

if TYPE_CHECKING:
    from reclock.sql.types import Type

QUOTED: Final = 1024
"""How much of a text an error quotes."""

_TRUE: Final = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
_FALSE: Final = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_WHOLE: Final = r"'^[ \\t-\\r]*[+-]?[0-9]+[ \\t-\\r]*$'"
_NUMBER: Final = r"'^[ \\t-\\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \\t-\\r]*$'"


def text_as_boolean(name: str) -> str:
    """Return Spark SQL for the truth that a text is; NULL if it is none."""
    word = f"lower(trim({name}))"
    yes, no = (", ".join(map(quote_string, words)) for words in (_TRUE, _FALSE))
    return f"CASE WHEN {word} IN ({yes}) THEN true WHEN {word} IN ({no}) THEN false END"


def text_as_integer_failure(name: str, kind: Type) -> str:
    """Return Spark SQL for the error of a text that is no integer of a type."""
    begins = quote_string('22003|value "')
    ends = quote_string(f'" is out of range for type {kind}')
    out = f"concat({begins}, left({name}, {QUOTED}), {ends})"
    return f"CASE WHEN rlike({name}, {_WHOLE}) THEN {out} ELSE {_syntax(name, kind)} END"


def text_as_numeric_failure(name: str, kind: Type) -> str:
    """Return Spark SQL for the error of a text that is no numeric of a type."""
    out = quote_string("22003|numeric field overflow")
    return f"CASE WHEN rlike({name}, {_NUMBER}) THEN {out} ELSE {_syntax(name, kind)} END"


def _syntax(name: str, kind: Type) -> str:
    start = quote_string(f'22P02|invalid input syntax for type {kind}: "')
    return f"concat({start}, left({name}, {QUOTED}), '\"')"
