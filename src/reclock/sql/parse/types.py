"""From sqlglot's data types to ours."""

from __future__ import annotations

import re

from sqlglot import exp

from reclock.errors import InvalidSyntax, InvalidValue, NotSupported
from reclock.sql import types
from reclock.sql.interval.qualifier import PLAIN, Qualifier
from reclock.sql.parse.dialect import parse_tokens, tokenize
from reclock.sql.parse.node import position_of

_D = exp.DType
_TYPES = {
    _D.BOOLEAN: types.BOOLEAN,
    _D.SMALLINT: types.SMALLINT,
    _D.INT: types.INTEGER,
    _D.BIGINT: types.BIGINT,
    _D.FLOAT: types.REAL,
    _D.DOUBLE: types.DOUBLE,
    _D.TEXT: types.TEXT,
    _D.VARCHAR: types.TEXT,
    _D.VARBINARY: types.BYTEA,
    _D.DATE: types.DATE,
    _D.TIMESTAMP: types.TIMESTAMP,
    _D.TIMESTAMPTZ: types.TIMESTAMPTZ,
    _D.INTERVAL: types.INTERVAL,
    _D.JSON: types.JSON,
    _D.JSONB: types.JSON,
}


def declared_type(node: exp.Expr) -> types.Written:
    """Return the type that ``node`` names; ``varchar(n)`` and ``interval(n)`` are more than one."""
    if isinstance(node, exp.DataType) and node.this == _D.VARCHAR and len(node.expressions) == 1:
        try:
            return types.Varchar(int(node.expressions[0].name))
        except InvalidValue as error:
            raise InvalidSyntax(
                error.message, code=error.code, hint=error.hint, position=position_of(node)
            ) from error
    if isinstance(node, exp.DataType) and node.this in {_D.CHAR, _D.NCHAR, _D.BPCHAR}:
        return _char(node)
    found = _interval(node)
    return convert_type(node) if found is None else found


def _char(node: exp.Expr) -> types.Written:
    """Return ``char(n)``, of which one character is none; ``bpchar`` has no length."""
    given = int(node.expressions[0].name) if node.expressions else 1
    if node.this == _D.BPCHAR and not node.expressions:
        return types.TEXT
    try:
        return types.Char(given)
    except InvalidValue as error:
        raise InvalidSyntax(
            error.message, code=error.code, hint=error.hint, position=position_of(node)
        ) from error


def _interval(node: exp.Expr) -> types.IntervalOf | None:
    """Return an interval with fields or digits; None if it is no such."""
    if not isinstance(node, exp.DataType):
        return None
    if isinstance(node.this, exp.Interval):
        return types.IntervalOf(qualifier_of(node.this.args.get("unit")))
    if node.this == _D.INTERVAL and len(node.expressions) == 1:
        return types.IntervalOf(Qualifier(digits=int(node.expressions[0].name)))
    return None


_QUALIFIER = re.compile(r"([a-z]+)?(?: to ([a-z]+))?(?:\((\d+)\))?")


def qualifier_of(unit: exp.Expr | None) -> Qualifier:
    """Return the fields and digits that stand after ``interval``.

    >>> str(qualifier_of(exp.Var(this="day to second(3)")))
    'day to second(3)'
    """
    if unit is None:
        return PLAIN
    found = _QUALIFIER.fullmatch(_written(unit))
    if found is None:
        message = f"syntax error: an interval has no fields {_written(unit)}"
        hint = "fields are year to month, or day, hour, minute and second, in this order"
        raise InvalidSyntax(message, hint=hint, position=position_of(unit))
    first, last, digits = found.groups()
    return Qualifier(first, last or first, None if digits is None else int(digits))


def _written(unit: exp.Expr) -> str:
    if isinstance(unit, exp.IntervalSpan):
        return f"{_written(unit.this)} to {_written(unit.expression)}"
    if isinstance(unit, exp.Var):
        return str(unit.name).lower()
    inside = [unit.this] if isinstance(unit, exp.Second) else unit.expressions
    name = "second" if isinstance(unit, exp.Second) else str(unit.name).lower()
    return f"{name}({', '.join(str(part.name) for part in inside)})"


def convert_type(node: exp.Expr) -> types.Type:
    """Return the type that ``node`` names, one without a length."""
    if not isinstance(node, exp.DataType):
        raise _unsupported(node)
    if node.this == _D.ARRAY and len(node.expressions) == 1:
        return types.Array(convert_type(node.expressions[0]))
    if node.this == _D.DECIMAL:
        digits = [int(p.name) for p in node.expressions]
        if not digits:
            return types.Numeric()
        return types.Numeric(digits[0], digits[1] if len(digits) > 1 else 0)
    found = _TYPES.get(node.this)
    if found is None or node.expressions:
        raise _unsupported(node)
    return found


def _unsupported(node: exp.Expr) -> NotSupported:
    name = node.sql("postgres").lower()
    hint = "use boolean, integer, bigint, numeric, double precision, text, bytea, date,"
    hint += " timestamp, timestamptz, interval, json or an array of these"
    if name.startswith(("varchar", "text")):
        hint = "use text"
    elif name.startswith(("char", "bpchar", "nchar")):
        hint = "use varchar(n) or text: values are not filled up with blanks"
    elif name.startswith("time"):
        hint = "use interval, or timestamp"
    return NotSupported(f'type "{name}" is not supported', hint=hint, position=position_of(node))


def parse_type_text(text: str) -> types.Written:
    """Read a type as it is written in a column definition."""
    probe = f"CAST(NULL AS {text})"
    return declared_type(parse_tokens(tokenize(probe), probe).args["to"])
