"""INSERT, UPDATE and DELETE, which sqlglot reads whole; and TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.parse.dialect import parse_tokens
from reclock.sql.parse.node import expect_only, identifier, position_of, unsupported
from reclock.sql.parse.query import convert_expression, convert_query
from reclock.sql.statement.write import Delete, Insert, Truncate, Update
from reclock.sql.syntax import expression as s

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor


def parse_write(cursor: Cursor) -> Insert | Update | Delete:
    """Read a whole INSERT, UPDATE or DELETE."""
    node = parse_tokens(cursor.rest(), cursor.text)
    if isinstance(node, exp.Insert):
        return _insert(node)
    if isinstance(node, exp.Update):
        return _update(node)
    if isinstance(node, exp.Delete):
        return _delete(node)
    raise unsupported(type(node).__name__, node)


def _target(node: exp.Expr) -> tuple[s.Name, str | None]:
    if not isinstance(node, exp.Table):
        msg = "this target"
        raise unsupported(msg, node)
    expect_only(node, "this", "db", "catalog", "alias")
    parts = (node.args.get("catalog"), node.args.get("db"), node.this)
    name = s.Name(tuple(identifier(p) for p in parts if p is not None), position_of(node))
    alias = node.args.get("alias")
    return name, None if alias is None else identifier(alias.this)


def _insert(node: exp.Expr) -> Insert:
    expect_only(node, "this", "expression", "default", "with_")
    if node.args.get("with_"):
        msg = "WITH before INSERT"
        raise unsupported(msg, node)
    columns: tuple[str, ...] = ()
    target = node.this
    if isinstance(target, exp.Schema):
        columns = tuple(identifier(c) for c in target.expressions)
        target = target.this
    name, alias = _target(target)
    if alias is not None:
        msg = "an alias in INSERT"
        raise unsupported(msg, node)
    if node.args.get("default"):
        return Insert(name, columns, None)
    source = node.args.get("expression")
    if source is None:
        message = "syntax error: INSERT without VALUES or a query"
        hint = "write VALUES (…), SELECT … or DEFAULT VALUES"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))
    return Insert(name, columns, convert_query(source))


def _update(node: exp.Expr) -> Update:
    expect_only(node, "this", "expressions", "where")
    name, alias = _target(node.this)
    if not node.expressions:
        message = "syntax error: UPDATE without SET"
        hint = "write SET column = expression"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))
    assignments = []
    for item in node.expressions:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            msg = "this assignment"
            raise unsupported(msg, item)
        column = convert_expression(item.this)
        value = item.args["expression"]
        if not isinstance(column, s.Name) or len(column.parts) != 1:
            msg = "a qualified column in SET"
            raise unsupported(msg, item)
        made: s.Expression = convert_expression(value)
        if isinstance(made, s.Name) and made.parts == ("default",):
            made = s.DefaultText()
        assignments.append((column.parts[0], made))
    where = node.args.get("where")
    return Update(
        name, alias, tuple(assignments), None if where is None else convert_expression(where.this)
    )


def _delete(node: exp.Expr) -> Delete:
    expect_only(node, "this", "where")
    name, alias = _target(node.this)
    where = node.args.get("where")
    return Delete(name, alias, None if where is None else convert_expression(where.this))


def parse_truncate(cursor: Cursor) -> Truncate:
    """Read what follows TRUNCATE; there are no sequences and no foreign keys to care about."""
    cursor.accept("TABLE")
    cursor.accept("ONLY")
    names = [cursor.name()]
    while cursor.accept(","):
        names.append(cursor.name())
    if not cursor.accept("RESTART", "IDENTITY"):
        cursor.accept("CONTINUE", "IDENTITY")
    if not cursor.accept("CASCADE"):
        cursor.accept("RESTRICT")
    cursor.end()
    return Truncate(tuple(names))
