"""Join: pairs of equal columns, and a residual condition.

Kinds: inner, left and full keep ``left ++ right`` columns; semi and anti keep the left
row (as often as it occurs) if some, or no, right row matches. ``rewrite.lower_joins``
turns everything but inner into inner joins, distinct keys, unions and negations, which is
all a renderer needs. NULL keys never match, unless the pair is ``null_safe``.

Cost: the changed rows and their matches; both inputs are arranged by their keys. A join
without pairs probes everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from reclock.sql.plan.node import Node, PlanError
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BOOLEAN

if TYPE_CHECKING:
    from reclock.sql.plan.scalar import Scalar


class JoinKind(Enum):
    """Which rows come out."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    def __repr__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A column of the left equals a column of the right; with ``null_safe`` also as NULLs."""

    left: int
    right: int
    null_safe: bool = False


@dataclass(frozen=True, eq=False)
class Join(Node):
    """``left`` and ``right`` where all pairs are equal and ``residual`` holds.

    ``residual`` is over ``left ++ right`` also for semi and anti joins.
    """

    kind: JoinKind
    left: Node
    right: Node
    on: tuple[KeyPair, ...] = ()
    residual: tuple[Scalar, ...] = ()

    def __post_init__(self) -> None:
        """Check the pairs' types and the residual."""
        left, right = self.left.schema, self.right.schema
        self._check_columns("left key", (p.left for p in self.on), len(left))
        self._check_columns("right key", (p.right for p in self.on), len(right))
        for pair in self.on:
            if left[pair.left].type != right[pair.right].type:
                message = f"Join: {left[pair.left]} and {right[pair.right]} are not of one type"
                raise PlanError(message)
        both = left + right
        for predicate in self.residual:
            self._check_scalar("condition", predicate, both)
            if predicate.type != BOOLEAN:
                message = f"Join: condition {predicate} is not boolean"
                raise PlanError(message)
        structure = (self.kind, self.on, self.residual)
        self._finish(self._schema(), self._keys(), *structure)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Both sides."""
        return (self.left, self.right)

    def _schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        if self.kind in {JoinKind.SEMI, JoinKind.ANTI}:
            return left
        if self.kind is JoinKind.FULL:
            left = _nullable(left)
        if self.kind in {JoinKind.LEFT, JoinKind.FULL}:
            right = _nullable(right)
        return left + right

    def _keys(self) -> list[frozenset[int]]:
        if self.kind in {JoinKind.SEMI, JoinKind.ANTI}:
            return list(self.left.unique_keys)
        width = self.left.width
        rights = [frozenset(c + width for c in key) for key in self.right.unique_keys]
        keys = [a | b for a in self.left.unique_keys for b in rights]
        if self.kind is JoinKind.FULL:
            return [k for k in keys if k]
        left_on = {p.left for p in self.on}
        right_on = {p.right for p in self.on}
        if any(key <= right_on for key in self.right.unique_keys):
            keys += list(self.left.unique_keys)
        if self.kind is JoinKind.INNER and any(k <= left_on for k in self.left.unique_keys):
            keys += rights
        return keys


def _nullable(schema: Schema) -> Schema:
    return Schema(tuple(Column(c.name, c.type) for c in schema))
