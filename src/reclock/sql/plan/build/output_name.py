"""The names of output columns that have none: those that PostgreSQL gives.

A column, a function and a field have a name of their own (``OWN``). What has less of one gives way
to it: ``CASE`` and a cast are named by what is inside of them if that has a name of its own, and
``case`` or the type if not. A subquery is named by its column.

Tests: tests/sql/test_output_name.py, which asks a real PostgreSQL.
"""

from __future__ import annotations

from typing import Final

from reclock.sql import types as t
from reclock.sql.syntax import expression as s
from reclock.sql.syntax import query as q

UNNAMED: Final = "?column?"
OWN: Final = 2
_WEAK: Final = 1

_TYPES: Final[dict[object, str]] = {
    t.BOOLEAN: "bool", t.SMALLINT: "int2", t.INTEGER: "int4", t.BIGINT: "int8",
    t.REAL: "float4", t.DOUBLE: "float8",
}  # fmt: skip


def output_name(e: s.Expression) -> str:
    """Return the name of an output without an alias."""
    return _named(e)[0]


def _named(e: s.Expression) -> tuple[str, int]:  # noqa: PLR0911 - one per kind
    """Return a name and how strong it is."""
    match e:
        case s.Name():
            return e.parts[-1], OWN
        case s.FunctionText():
            return e.name, OWN
        case s.FieldText():
            return e.attribute, OWN
        case s.Subscript():
            return _named(e.operand)
        case s.ExistsQuery():
            return "exists", OWN
        case s.ArrayText():
            return "array", OWN
        case s.CastText():
            return _or(e.operand, _type_name(e.type))
        case s.IntervalText():
            return "interval", _WEAK
        case s.CaseText():
            return ("case", _WEAK) if e.otherwise is None else _or(e.otherwise, "case")
        case s.ScalarQuery():
            return _of_query(e.query)
    return UNNAMED, 0


def _or(e: s.Expression, otherwise: str) -> tuple[str, int]:
    name, strength = _named(e)
    return (name, strength) if strength == OWN else (otherwise, _WEAK)


def _of_query(query: q.Query) -> tuple[str, int]:
    body = query.body
    if isinstance(body, q.Query):
        return _of_query(body)
    if isinstance(body, q.SetOperation):
        return _of_query(body.left)
    if isinstance(body, q.Select):
        item = body.items[0]
        return (item.alias, OWN) if item.alias else (output_name(item.expression), OWN)
    return "column1", OWN


def _type_name(kind: t.Written) -> str:
    match kind:
        case t.Array(element):
            return _type_name(element)
        case t.Numeric():
            return "numeric"
        case t.Varchar():
            return "varchar"
        case t.IntervalOf():
            return "interval"
    return _TYPES.get(kind, str(kind))
