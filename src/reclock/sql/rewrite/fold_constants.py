"""Compute what is known already: boolean constants, NULL tests, decided branches.

``WHERE true AND p`` is ``WHERE p``; ``WHERE false`` has no rows; ``CASE WHEN true THEN x``
is x; ``x IS NULL`` is false where x cannot be NULL; equal literals compare.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from reclock.sql.plan.decorrelate import with_scalars
from reclock.sql.plan.relation import Filter, Join, JoinKind, empty, transform
from reclock.sql.plan.scalar import (
    FALSE,
    TRUE,
    And,
    Call,
    Case,
    Coalesce,
    Literal,
    Or,
    can_fail,
)
from reclock.sql.plan.scalar import transform as transform_scalar
from reclock.sql.types import BOOLEAN, INTEGERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NULL = Literal(None, BOOLEAN)


def fold_constants(node: Node) -> Node:
    """Simplify every expression, and drop filters that are decided."""
    return transform(node, _node)


def _node(node: Node) -> Node:
    node = with_scalars(node, fold_scalar)
    if isinstance(node, Filter):
        return _filter(node)
    if isinstance(node, Join) and TRUE in node.residual:
        kept = tuple(p for p in node.residual if p != TRUE)
        return Join(node.kind, node.left, node.right, node.on, kept)
    if isinstance(node, Join) and node.kind is JoinKind.INNER and _decided(node.residual):
        return empty(node.schema)
    return node


def _decided(predicates: tuple[Scalar, ...]) -> bool:
    """Return whether no row passes, whatever it holds."""
    for predicate in predicates:
        if predicate in {FALSE, _NULL}:
            return True
        if can_fail(predicate):
            return False
    return False


def _filter(node: Filter) -> Node:
    flat: list[Scalar] = []
    for predicate in node.predicates:
        flat += predicate.operands if isinstance(predicate, And) else (predicate,)
    if _decided(tuple(flat)):
        return empty(node.schema)
    kept = tuple(dict.fromkeys(p for p in flat if p != TRUE))
    return Filter(node.input, kept) if kept else node.input


def fold_scalar(scalar: Scalar) -> Scalar:
    """Return ``scalar`` with everything computed that is known."""
    return transform_scalar(scalar, _fold)


def _fold(scalar: Scalar) -> Scalar:
    match scalar:
        case And() | Or():
            return _connective(scalar)
        case Case():
            return _case(scalar)
        case Coalesce():
            kept = [o for o in scalar.operands if not (isinstance(o, Literal) and o.value is None)]
            for at, operand in enumerate(kept):
                if not operand.nullable:
                    kept = kept[: at + 1]
                    break
            if not kept:
                return scalar.operands[0]
            return kept[0] if len(kept) == 1 else Coalesce(tuple(kept))
        case Call():
            return _call(scalar)
    return scalar


def _connective(scalar: And | Or) -> Scalar:
    decides, neutral = (FALSE, TRUE) if isinstance(scalar, And) else (TRUE, FALSE)
    kept: list[Scalar] = []
    for operand in scalar.operands:
        if operand == neutral:
            continue
        if operand == decides and not any(can_fail(k) for k in kept):
            return decides
        kept.append(operand)
        if operand == decides:
            break
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else type(scalar)(tuple(kept))


def _case(scalar: Case) -> Scalar:
    branches: list[tuple[Scalar, Scalar]] = []
    for condition, result in scalar.branches:
        if condition in {FALSE, _NULL}:
            continue
        if condition == TRUE:
            return Case(tuple(branches), result) if branches else result
        branches.append((condition, result))
    return Case(tuple(branches), scalar.otherwise) if branches else scalar.otherwise


def _call(scalar: Call) -> Scalar:  # noqa: PLR0911  # one per case
    name, arguments = scalar.function.name, scalar.arguments
    if name == "is null" and not arguments[0].nullable and not can_fail(arguments[0]):
        return FALSE
    if not all(isinstance(a, Literal) for a in arguments):
        return scalar
    values: list[Any] = [a.value for a in arguments if isinstance(a, Literal)]
    if name == "is null":
        return Literal(values[0] is None, BOOLEAN)
    if name in {"is true", "is false"}:
        return Literal(values[0] is (name == "is true"), BOOLEAN)
    if name == "not":
        return Literal(None if values[0] is None else not values[0], BOOLEAN)
    if name in _COMPARE:
        if None in values:
            return _NULL
        if arguments[0].type == arguments[1].type and arguments[0].type in {*INTEGERS, BOOLEAN}:
            return Literal(bool(_COMPARE[name](*values)), BOOLEAN)
    return scalar
