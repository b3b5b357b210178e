"""A relation without rows makes most of what is above it empty, or simpler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.relation import (
    Constant,
    Get,
    Join,
    JoinKind,
    Project,
    Reduce,
    Union,
    column,
    empty,
    transform,
)
from reclock.sql.plan.scalar import Literal

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node


def propagate_empty(node: Node) -> Node:
    """Replace what cannot have rows by the empty relation."""
    return transform(node, _node)


def _is_empty(node: Node) -> bool:
    return isinstance(node, Constant) and node.is_empty


def _node(node: Node) -> Node:
    match node:
        case Constant() | Get():
            return node
        case Join():
            return _join(node)
        case Union():
            kept = tuple(m for m in node.members if not _is_empty(m))
            if not kept:
                return empty(node.schema)
            return kept[0] if len(kept) == 1 else Union(kept)
        case Reduce(keys=()):
            return node
    return empty(node.schema) if _is_empty(node.inputs[0]) else node


def _join(node: Join) -> Node:
    left, right = _is_empty(node.left), _is_empty(node.right)
    if left and (node.kind is not JoinKind.FULL or right):
        return empty(node.schema)
    if not right:
        return node
    if node.kind in {JoinKind.INNER, JoinKind.SEMI}:
        return empty(node.schema)
    if node.kind is JoinKind.ANTI:
        return node.left
    kept = tuple((c.name, column(node.left, i)) for i, c in enumerate(node.left.schema))
    nulls = tuple((c.name, Literal(None, c.type)) for c in node.right.schema)
    return Project(node.left, (*kept, *nulls))
