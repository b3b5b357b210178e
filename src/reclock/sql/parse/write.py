"""INSERT, UPDATE, DELETE and MERGE, which sqlglot reads whole; and TRUNCATE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.parse.assignments import convert_assignments
from reclock.sql.parse.dialect import parse_tokens
from reclock.sql.parse.merge import convert_merge
from reclock.sql.parse.node import expect_only, identifier, position_of, unsupported
from reclock.sql.parse.query import (
    convert_common,
    convert_expression,
    convert_item,
    convert_query,
    convert_source,
)
from reclock.sql.parse.target import convert_target
from reclock.sql.statement.write import Delete, Insert, Merge, OnConflict, Truncate, Update
from reclock.sql.syntax import query as q

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from reclock.sql.parse.cursor import Cursor

_OVERRIDING = ("SYSTEM", "USER")
_BODIES = ("SELECT", "VALUES", "TABLE")


def writes_after_with(cursor: Cursor, words: tuple[str, ...]) -> bool:
    """Return whether WITH stands before a statement that begins with one of ``words``."""
    if not cursor.sees("WITH"):
        return False
    depth = 0
    for token in cursor.ahead():
        text = str(token.text).upper()
        depth += (text == "(") - (text == ")")
        if depth == 0 and text in {*words, *_BODIES}:
            return text in words
    return False


def parse_write(cursor: Cursor) -> Insert | Update | Delete | Merge:
    """Read a whole INSERT, UPDATE, DELETE or MERGE."""
    tokens, overriding = _overriding(cursor.rest())
    node = parse_tokens(tokens, cursor.text)
    if isinstance(node, exp.Insert):
        return replace(_insert(node), overriding=overriding)
    if isinstance(node, exp.Update):
        return _update(node)
    if isinstance(node, exp.Delete):
        return _delete(node)
    if isinstance(node, exp.Merge):
        return convert_merge(node, _returning(node))
    raise unsupported(type(node).__name__, node)


def _overriding(tokens: list[Token]) -> tuple[list[Token], str | None]:
    """Return a statement without ``OVERRIDING SYSTEM | USER VALUE``, and which of them it said."""
    words = [str(token.text).upper() for token in tokens]
    for at, word in enumerate(words[:-2]):
        if word == "OVERRIDING" and words[at + 2] == "VALUE" and words[at + 1] in _OVERRIDING:
            return tokens[:at] + tokens[at + 3 :], words[at + 1].lower()
    return tokens, None


def _returning(node: exp.Expr) -> tuple[q.SelectItem, ...]:
    given = node.args.get("returning")
    if given is None:
        return ()
    expect_only(given, "expressions")
    return tuple(convert_item(item) for item in given.expressions)


def _insert(node: exp.Expr) -> Insert:
    expect_only(node, "this", "expression", "default", "with_", "conflict", "returning")
    columns: tuple[str, ...] = ()
    target = node.this
    if isinstance(target, exp.Schema):
        columns = tuple(identifier(c) for c in target.expressions)
        target = target.this
    name, alias = convert_target(target)
    source = node.args.get("expression")
    query = None
    if not node.args.get("default"):
        if source is None:
            message = "syntax error: INSERT without VALUES or a query"
            hint = "write VALUES (…), SELECT … or DEFAULT VALUES"
            raise InvalidSyntax(message, hint=hint, position=position_of(node))
        query = convert_query(source)
    given = node.args.get("conflict")
    conflict = None if given is None else _conflict(given)
    common = convert_common(node.args.get("with_"))
    return Insert(name, columns, query, alias, conflict, _returning(node), common)


def _conflict(node: exp.Expr) -> OnConflict:
    expect_only(node, "expressions", "action", "conflict_keys", "constraint", "where")
    columns = []
    for key in node.args.get("conflict_keys") or ():
        named = key.this if isinstance(key, exp.Ordered) else key
        if not isinstance(named, exp.Column) or named.args.get("table") is not None:
            msg = "an expression in ON CONFLICT"
            raise unsupported(msg, node)
        columns.append(identifier(named.this))
    constraint = node.args.get("constraint")
    named = None if constraint is None else identifier(constraint)
    where = node.args.get("where")
    condition = None if where is None else convert_expression(where.this)
    if str(node.args["action"].name).upper() == "DO NOTHING":
        return OnConflict(tuple(columns), named)
    if not columns and named is None:
        message = "syntax error: ON CONFLICT DO UPDATE requires inference specification"
        hint = "write ON CONFLICT (columns) DO UPDATE"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))
    return OnConflict(tuple(columns), named, convert_assignments(node), condition)


def _update(node: exp.Expr) -> Update:
    expect_only(node, "this", "expressions", "where", "from_", "returning", "with_")
    name, alias = convert_target(node.this)
    if not node.expressions:
        message = "syntax error: UPDATE without SET"
        hint = "write SET column = expression"
        raise InvalidSyntax(message, hint=hint, position=position_of(node))
    where, source = node.args.get("where"), node.args.get("from_")
    return Update(
        name,
        alias,
        convert_assignments(node),
        None if where is None else convert_expression(where.this),
        None if source is None else convert_source(source.this),
        _returning(node),
        convert_common(node.args.get("with_")),
    )


def _delete(node: exp.Expr) -> Delete:
    expect_only(node, "this", "where", "using", "returning", "with_")
    name, alias = convert_target(node.this)
    where = node.args.get("where")
    items = [convert_source(item) for item in node.args.get("using") or ()]
    source = items[0] if items else None
    for item in items[1:]:
        assert source is not None
        source = q.JoinText("cross", source, item)
    return Delete(
        name,
        alias,
        None if where is None else convert_expression(where.this),
        source,
        _returning(node),
        convert_common(node.args.get("with_")),
    )


def parse_truncate(cursor: Cursor) -> Truncate:
    """Read what follows TRUNCATE; there are no foreign keys to care about."""
    cursor.accept("TABLE")
    cursor.accept("ONLY")
    names = [cursor.name()]
    while cursor.accept(","):
        names.append(cursor.name())
    restart = cursor.accept("RESTART", "IDENTITY")
    if not restart:
        cursor.accept("CONTINUE", "IDENTITY")
    if not cursor.accept("CASCADE"):
        cursor.accept("RESTRICT")
    cursor.end()
    return Truncate(tuple(names), restart)
