"""A join with one constant row is a projection: the row's values become literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.relation import (
    Constant,
    Filter,
    Join,
    JoinKind,
    Project,
    column,
    transform,
)
from reclock.sql.plan.scalar import Literal, substituted

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar


def single_row(node: Node) -> Node:
    """Replace inner joins with a single constant row."""
    return transform(node, lambda n: _join(n) if isinstance(n, Join) else n)


def _literals(node: Node) -> tuple[Scalar, ...] | None:
    if not isinstance(node, Constant) or len(node.rows) != 1 or node.rows[0][1] != 1:
        return None
    row = node.rows[0][0]
    return tuple(Literal(v, c.type) for v, c in zip(row, node.schema, strict=True))


def _join(node: Join) -> Node:
    if node.on or node.kind is not JoinKind.INNER:
        return node
    left, right = _literals(node.left), _literals(node.right)
    if left is not None:
        other = node.right
        values = (*left, *(column(other, i) for i in range(other.width)))
    elif right is not None:
        other = node.left
        values = (*(column(other, i) for i in range(other.width)), *right)
    else:
        return node
    made: Node = other
    if node.residual:
        made = Filter(other, tuple(substituted(p, values) for p in node.residual))
    return Project(made, tuple(zip(node.schema.names, values, strict=True)))
