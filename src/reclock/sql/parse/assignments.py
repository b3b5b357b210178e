"""SET, of UPDATE, of ON CONFLICT DO UPDATE and of MERGE."""

from __future__ import annotations

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.parse.node import identifier, position_of, unsupported
from reclock.sql.parse.query import convert_expression, convert_query
from reclock.sql.statement.write import Assignments
from reclock.sql.syntax import expression as s


def convert_assignments(node: exp.Expr) -> Assignments:
    """Return what a node's SET assigns; ``(a, b) = (x, y)`` is two assignments."""
    values: list[tuple[str, s.Expression]] = []
    rows = []
    for item in node.expressions:
        if not isinstance(item, exp.EQ):
            msg = "this assignment"
            raise unsupported(msg, item)
        given = item.args["expression"]
        if not isinstance(item.this, exp.Tuple | exp.Paren):
            values.append((_column(item.this, item), default_or(given)))
            continue
        listed = item.this.expressions if isinstance(item.this, exp.Tuple) else [item.this.this]
        names = tuple(_column(column, item) for column in listed)
        if isinstance(given, exp.Subquery | exp.Select):
            rows.append((names, convert_query(given)))
            continue
        cells = _cells(given, item)
        if len(cells) != len(names):
            message = "number of columns does not match number of values"
            hint = f"there are {len(cells)} values for {len(names)} columns"
            raise InvalidSyntax(message, hint=hint, position=position_of(item))
        values += zip(names, map(default_or, cells), strict=True)
    return Assignments(tuple(values), tuple(rows))


def default_or(node: exp.Expr) -> s.Expression:
    """Return a value, or DEFAULT, which sqlglot takes for a column."""
    made: s.Expression = convert_expression(node)
    if not isinstance(made, s.Name) or made.parts != ("default",):
        return made
    quoted = isinstance(node, exp.Column) and bool(node.this.args.get("quoted"))
    return made if quoted else s.DefaultText()


def _column(node: exp.Expr, item: exp.Expr) -> str:
    if not isinstance(node, exp.Column):
        msg = "this assignment"
        raise unsupported(msg, item)
    if node.args.get("table") is not None:
        msg = "a qualified column in SET"
        raise unsupported(msg, item)
    return identifier(node.this)


def _cells(node: exp.Expr, item: exp.Expr) -> list[exp.Expr]:
    """Return the values of a row."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Paren):
        return [node.this]
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "ROW":
        return list(node.expressions)
    msg = "this assignment"
    raise unsupported(msg, item)
