"""Turn ``left expression = right expression`` in a join's condition into a key pair.

So that the join probes an arrangement by key instead of looking at every row. An
expression that is not a column becomes one in a projection below the join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.sql.plan.relation import (
    Join,
    JoinKind,
    KeyPair,
    Project,
    column,
    keep,
    transform,
)
from reclock.sql.plan.scalar import (
    Call,
    ColumnRef,
    can_fail,
    columns_of,
    has_outer,
    moved,
    shifted,
)

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar

_EQUAL = {"=": False, "is not distinct from": True}


def join_keys(node: Node) -> Node:
    """Extract the key pairs of every join."""
    return transform(node, lambda n: _join(n) if isinstance(n, Join) else n)


def _sides(predicate: Scalar, width: int) -> tuple[Scalar, Scalar, bool] | None:
    """Return (left, right, null safe) if ``predicate`` equates something of either input."""
    if not isinstance(predicate, Call) or predicate.function.name not in _EQUAL:
        return None
    a, b = predicate.arguments
    if a.type != b.type or any(can_fail(x) or has_outer(x) for x in (a, b)):
        return None
    for left, right in ((a, b), (b, a)):
        in_left, in_right = columns_of(left), columns_of(right)
        if not in_left or not in_right:
            continue
        if all(c < width for c in in_left) and all(c >= width for c in in_right):
            return left, shifted(right, -width), _EQUAL[predicate.function.name]
    return None


class _Side:
    """One input, with the columns added to it for keys."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.added: list[Scalar] = []

    def place(self, scalar: Scalar) -> int:
        if isinstance(scalar, ColumnRef):
            return scalar.index
        if scalar not in self.added:
            self.added.append(scalar)
        return self.node.width + self.added.index(scalar)

    def widened(self) -> Node:
        if not self.added:
            return self.node
        kept = tuple((c.name, column(self.node, i)) for i, c in enumerate(self.node.schema))
        return Project(self.node, (*kept, *(("key", s) for s in self.added)))


def _join(node: Join) -> Node:
    width = node.left.width
    left, right = _Side(node.left), _Side(node.right)
    pairs, kept = list(node.on), []
    for predicate in node.residual:
        found = _sides(predicate, width)
        if found is None:
            kept.append(predicate)
            continue
        pair = KeyPair(left.place(found[0]), right.place(found[1]), found[2])
        if pair not in pairs:
            pairs.append(pair)
    if len(kept) == len(node.residual):
        return node
    extra = len(left.added)
    residual = tuple(moved(p, lambda c: c if c < width else c + extra) for p in kept)
    made = replace(
        node,
        left=left.widened(),
        right=right.widened(),
        on=tuple(pairs),
        residual=residual,
    )
    if node.kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return keep(made, range(width))
    if not extra and not right.added:
        return made
    start = width + extra
    return keep(made, (*range(width), *range(start, start + node.right.width)))
