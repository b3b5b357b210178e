"""Move filters toward the rows they look at, where fewer rows flow.

Through projections, unions, the keys of groupings and the inputs of joins; what looks at
both inputs of an inner join becomes its condition. Only predicates that cannot fail move:
below a join they would see rows that the join would have removed. They also overtake those
that can fail, and leave them fewer rows (``condition_order``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.sql.plan.condition_order import in_order
from reclock.sql.plan.relation import (
    Distinct,
    Filter,
    FlatMap,
    Join,
    JoinKind,
    Negate,
    Project,
    Reduce,
    Threshold,
    TopK,
    Union,
    Window,
    transform,
    with_inputs,
)
from reclock.sql.plan.scalar import can_fail, columns_of, moved, shifted, substituted

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar

_LEFT_KEEPS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


def push_filters(node: Node) -> Node:
    """Move every filter as far down as it goes."""
    return transform(node, _node)


def _node(node: Node) -> Node:
    if isinstance(node, Filter):
        return _push(node.input, node.predicates)
    if isinstance(node, Join) and node.residual:
        return _own_condition(replace(node, residual=in_order(node.residual)))
    return node


def _filtered(node: Node, predicates: list[Scalar] | tuple[Scalar, ...]) -> Node:
    return _push(node, tuple(predicates)) if predicates else node


def _push(node: Node, predicates: tuple[Scalar, ...]) -> Node:
    """Return ``node`` filtered by ``predicates``, each as deep as it may go."""
    if isinstance(node, Filter):
        return _push(node.input, (*node.predicates, *predicates))
    going: list[Scalar] = []
    staying: list[Scalar] = []
    for predicate in in_order(predicates):
        stays = can_fail(predicate) or not _passes(node, predicate)
        (staying if stays else going).append(predicate)
    if going:
        node = _through(node, tuple(going))
    return Filter(node, tuple(staying)) if staying else node


def _passes(node: Node, predicate: Scalar) -> bool:  # noqa: PLR0911  # one per case
    """Return whether ``predicate`` can be evaluated before ``node``."""
    used = columns_of(predicate)
    match node:
        case Project():
            return not can_fail(substituted(predicate, tuple(s for _, s in node.outputs)))
        case Distinct() | Negate() | Threshold() | Union():
            return True
        case Reduce():
            return bool(node.keys) and bool(used) and all(c < len(node.keys) for c in used)
        case TopK():
            return bool(used) and used <= set(node.group)
        case Window():
            return bool(used) and used <= set(node.partition)
        case FlatMap():
            return all(c < node.input.width for c in used)
        case Join(kind=JoinKind.INNER):
            return True
        case Join():
            return node.kind in _LEFT_KEEPS and all(c < node.left.width for c in used)
    return False


def _through(node: Node, predicates: tuple[Scalar, ...]) -> Node:
    match node:
        case Project():
            below = tuple(s for _, s in node.outputs)
            pushed = [substituted(p, below) for p in predicates]
            return replace(node, input=_filtered(node.input, pushed))
        case Reduce():
            pushed = [moved(p, lambda c: node.keys[c]) for p in predicates]
            return replace(node, input=_filtered(node.input, pushed))
        case Union():
            return Union(tuple(_filtered(m, predicates) for m in node.members))
        case Join():
            return _own_condition(
                replace(node, residual=in_order((*node.residual, *predicates)))
                if node.kind is JoinKind.INNER
                else replace(node, left=_filtered(node.left, predicates))
            )
    return with_inputs(node, (_filtered(node.inputs[0], predicates),))


def _own_condition(node: Join) -> Node:
    """Move the parts of a join's condition that look at one input into that input."""
    width = node.left.width
    lefts, rights, kept = [], [], []
    for predicate in node.residual:
        used = columns_of(predicate)
        if can_fail(predicate) or not used:
            kept.append(predicate)
        elif all(c < width for c in used) and node.kind in {JoinKind.INNER, JoinKind.SEMI}:
            lefts.append(predicate)
        elif all(c >= width for c in used) and node.kind is not JoinKind.FULL:
            rights.append(shifted(predicate, -width))
        else:
            kept.append(predicate)
    if not lefts and not rights:
        return node
    return replace(
        node,
        left=_filtered(node.left, lefts),
        right=_filtered(node.right, rights),
        residual=tuple(kept),
    )
