"""Parameters of queries over the catalog: their numbers, and the types that the text wants.

Tests: tests/sql/pg/test_translate.py.
"""

from __future__ import annotations

from sqlglot import exp

from reclock.errors import NotSupported
from reclock.sql.pg import casts
from reclock.sql.pg.relations import type_of_column
from reclock.sql.types import BIGINT, BOOLEAN, CHAR, TEXT, UNKNOWN, Array, Type


def parameter_types(query: exp.Expr) -> tuple[Type, ...]:
    """Return the types that a query wants of its parameters, unknown if it wants none."""
    found: dict[int, Type] = {}
    for parameter in query.find_all(exp.Parameter):
        number = number_of(parameter)
        if found.get(number, UNKNOWN) == UNKNOWN:
            found[number] = _wanted(parameter)
    return tuple(found.get(number, UNKNOWN) for number in range(1, max(found, default=0) + 1))


def number_of(parameter: exp.Parameter) -> int:
    """Return n of $n."""
    text = str(parameter.this.this)
    if not text.isdecimal():
        message = "a named parameter is not supported"
        raise NotSupported(message, hint="write parameters as $1, $2, …")
    return int(text)


def _wanted(parameter: exp.Parameter) -> Type:
    """Return the type that the surroundings of a parameter want, unknown if they want none."""
    parent: exp.Expr | None = parameter.parent
    of_array = False
    while isinstance(parent, exp.Paren | exp.Any | exp.All):
        of_array |= not isinstance(parent, exp.Paren)
        parent = parent.parent
    match parent:
        case exp.Cast():
            kind = casts.wanted_type(parent.to)
            if kind is None:
                return UNKNOWN
            return (
                TEXT if kind.type == CHAR else kind.type
            )  # CHAR is text, "char" is not told apart
        case exp.Limit() | exp.Offset():
            return BIGINT
        case exp.And() | exp.Or() | exp.Not():
            return BOOLEAN
        case exp.Predicate() | exp.In():
            for side in (parent.this, parent.args.get("expression")):
                if isinstance(side, exp.Column):
                    known = type_of_column(side.name)
                    if known is not None and known.name != "char":
                        return Array(known.type) if of_array else known.type
    return UNKNOWN
