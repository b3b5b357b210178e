"""The table that a statement writes to, as it is named."""

from __future__ import annotations

from sqlglot import exp

from reclock.sql.parse.node import expect_only, identifier, position_of, unsupported
from reclock.sql.syntax.expression import Name


def convert_target(node: exp.Expr) -> tuple[Name, str | None]:
    """Return the name and the alias of a target."""
    if not isinstance(node, exp.Table):
        msg = "this target"
        raise unsupported(msg, node)
    expect_only(node, "this", "db", "catalog", "alias")
    parts = (node.args.get("catalog"), node.args.get("db"), node.this)
    name = Name(tuple(identifier(p) for p in parts if p is not None), position_of(node))
    alias = node.args.get("alias")
    return name, None if alias is None else identifier(alias.this)
