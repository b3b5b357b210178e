"""MERGE, from sqlglot's node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.parse.assignments import convert_assignments, default_or
from reclock.sql.parse.node import expect_only, identifier, position_of, unsupported
from reclock.sql.parse.query import convert_common, convert_expression, convert_source
from reclock.sql.parse.target import convert_target
from reclock.sql.statement.write import Assignments, Merge, When

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression
    from reclock.sql.syntax.query import SelectItem

_ACTIONS = {
    "matched": ("update", "delete", "nothing"),
    "source": ("update", "delete", "nothing"),
    "target": ("insert", "nothing"),
}


def convert_merge(node: exp.Expr, returning: tuple[SelectItem, ...]) -> Merge:
    """Return a MERGE as our statement."""
    expect_only(node, "this", "using", "on", "whens", "returning", "with_")
    name, alias = convert_target(node.this)
    whens = node.args.get("whens")
    if node.args.get("on") is None or whens is None or not whens.expressions:
        message = "syntax error: MERGE without ON or WHEN"
        hint = "write MERGE INTO … USING … ON … WHEN [NOT] MATCHED THEN …"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))
    made = tuple(_when(when) for when in whens.expressions)
    _check_reached(made, node)
    return Merge(
        name,
        alias,
        convert_source(node.args["using"]),
        convert_expression(node.args["on"]),
        made,
        returning,
        convert_common(node.args.get("with_")),
    )


def _when(node: exp.Expr) -> When:
    expect_only(node, "matched", "source", "condition", "then")
    case = "matched" if node.args.get("matched") else "target"
    if case == "target" and node.args.get("source"):
        case = "source"
    condition = node.args.get("condition")
    made = _action(
        node.args["then"], case, None if condition is None else convert_expression(condition)
    )
    if made.action not in _ACTIONS[case]:
        words = "WHEN MATCHED" if case == "matched" else f"WHEN NOT MATCHED BY {case.upper()}"
        message = f"syntax error: {made.action.upper()} after {words}"
        hint = "INSERT is for rows that the target lacks, UPDATE and DELETE for rows that it has"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))
    return made


def _action(then: exp.Expr, case: str, condition: Expression | None) -> When:
    none = Assignments()
    if isinstance(then, exp.Var):
        word = str(then.name).upper()
        action = {"DELETE": "delete", "DO NOTHING": "nothing"}.get(word)
        if action is not None:
            return When(case, condition, action, none)
    if isinstance(then, exp.Update):
        expect_only(then, "expressions")
        return When(case, condition, "update", convert_assignments(then))
    if isinstance(then, exp.Insert):
        expect_only(then, "this", "expression")
        return _insert(then, case, condition)
    msg = "this action of MERGE"
    raise unsupported(msg, then)


def _insert(then: exp.Expr, case: str, condition: Expression | None) -> When:
    values, listed = then.args.get("expression"), then.args.get("this")
    names = list(listed.expressions) if listed is not None else []
    if values is None:
        if len(names) == 1 and identifier(names[0].this) == "default":
            names = []  # DEFAULT VALUES
        else:
            msg = "INSERT without VALUES in MERGE"
            raise unsupported(msg, then)
    columns = tuple(identifier(column.this) for column in names)
    cells = [] if values is None else values.expressions
    given = tuple(default_or(cell) for cell in cells)
    return When(case, condition, "insert", Assignments(), columns, given)


def _check_reached(whens: tuple[When, ...], node: exp.Expr) -> None:
    """Refuse a WHEN that comes after one of its case without a condition."""
    ended = set()
    for when in whens:
        if when.case in ended:
            message = "unreachable WHEN clause specified after unconditional WHEN clause"
            hint = "put it before the one without AND"
            raise InvalidSyntax(message, hint=hint, position=position_of(node))
        if when.condition is None:
            ended.add(when.case)
