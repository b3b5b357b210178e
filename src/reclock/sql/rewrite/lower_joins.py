"""Outer, semi and anti joins from inner joins, distinct keys, unions and negations.

::

    semi(A, B)  =  A ⋈ distinct(keys of B)                     without a residual condition
    semi(A, B)  =  A ⋈ distinct(rows of A that match)          with one; rows compare whole
    anti(A, B)  =  A − semi(A, B)
    left(A, B)  =  (A ⋈ B)  ∪  anti(A, B) padded with NULLs
    full(A, B)  =  left(A, B)  ∪  anti(B, A) padded with NULLs

After this rule a renderer sees inner joins only, and each part is maintained at the cost
of its change. Parts that occur twice are equal nodes and are computed once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.sql.plan.relation import (
    Distinct,
    Join,
    JoinKind,
    KeyPair,
    Negate,
    Project,
    Union,
    column,
    keep,
    transform,
)
from reclock.sql.plan.scalar import Literal, moved

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar


def lower_joins(node: Node) -> Node:
    """Replace every join that is not inner."""
    return transform(node, lambda n: _join(n) if isinstance(n, Join) else n)


def _join(node: Join) -> Node:
    match node.kind:
        case JoinKind.INNER:
            return node
        case JoinKind.SEMI:
            return _semi(node)
        case JoinKind.ANTI:
            return _anti(node)
    inner = replace(node, kind=JoinKind.INNER)
    members: list[Node] = [inner, _padded(node, _anti(node))]
    if node.kind is JoinKind.FULL:
        members.append(_padded_left(node, _anti(_mirrored(node))))
    return Union(tuple(members))


def _semi(node: Join) -> Node:
    left = node.left
    if not node.residual:
        rights = tuple(p.right for p in node.on)
        keys = Distinct(keep(node.right, rights))
        on = tuple(replace(p, right=i) for i, p in enumerate(node.on))
        return keep(Join(JoinKind.INNER, left, keys, on), range(left.width))
    matched = keep(replace(node, kind=JoinKind.INNER), range(left.width))
    once = Distinct(matched)
    if left.unique_keys:
        return once
    on = tuple(KeyPair(i, i, left.schema[i].nullable) for i in range(left.width))
    return keep(Join(JoinKind.INNER, left, once, on), range(left.width))


def _anti(node: Join) -> Node:
    return Union((node.left, Negate(_semi(node))))


def _padded(node: Join, rest: Node) -> Node:
    kept = tuple((c.name, column(rest, i)) for i, c in enumerate(rest.schema))
    nulls = tuple((c.name, Literal(None, c.type)) for c in node.right.schema)
    return Project(rest, (*kept, *nulls))


def _padded_left(node: Join, rest: Node) -> Node:
    nulls = tuple((c.name, Literal(None, c.type)) for c in node.left.schema)
    kept: tuple[tuple[str, Scalar], ...] = tuple(
        (c.name, column(rest, i)) for i, c in enumerate(rest.schema)
    )
    return Project(rest, (*nulls, *kept))


def _mirrored(node: Join) -> Join:
    left, right = node.left.width, node.right.width
    on = tuple(KeyPair(p.right, p.left, p.null_safe) for p in node.on)
    residual = tuple(moved(p, lambda c: c + right if c < left else c - left) for p in node.residual)
    return Join(JoinKind.ANTI, node.right, node.left, on, residual)
