"""Join: Spark's own joins of every kind.

A residual condition that cannot fail is part of Spark's join condition. One that can fail,
or needs columns of its own, becomes a filter above an inner join; joins of other kinds are
then lowered to inner ones by the plan's own rule (``sql.rewrite.lower_joins``), so that it
is tried on exactly the pairs of rows with equal keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.spark.batch.relation import Relation, named, select
from reclock.spark.batch.row import filtered
from reclock.sql.plan.relation import Join, JoinKind
from reclock.sql.plan.spark_text import compile_scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.spark.batch.relation import NewPart

_WORDS = {
    JoinKind.INNER: "JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}
_ONE_SIDE = {JoinKind.SEMI, JoinKind.ANTI}


def needs_lowering(node: Join) -> bool:
    """Return whether the join's condition cannot stand in Spark's join."""
    if node.kind is JoinKind.INNER or not node.residual:
        return False
    made = compile_scalars(node.residual, _names(node))
    return bool(made.stages) or made.error is not None


def _names(node: Join) -> list[str]:
    left = [f"c{i}" for i in range(node.left.width)]
    return [*left, *(f"r{i}" for i in range(node.right.width))]


def join(node: Join, left: Relation, right: Relation, part: NewPart) -> Relation:
    """Return the matching rows; ``needs_lowering`` must be false."""
    counted = left.counted or right.counted
    if counted:
        left, right = _countable(node.kind, left, right)
    names = _names(node)
    conditions = [_pair(p.left, p.right, null_safe=p.null_safe) for p in node.on]
    made = compile_scalars(node.residual, names)
    inline = not made.stages and made.error is None
    if inline:
        conditions += made.values
    both = f"{left.source} {_WORDS[node.kind]} {_renamed(right)} ON {_all(conditions)}"
    kinds = tuple(c.type for c in node.schema)
    if node.kind in _ONE_SIDE:
        return Relation(select([*left.names, *left.carried], both), kinds, left.counted)
    counts = ["coalesce(n, 1L) * coalesce(rn, 1L) AS n"] if counted else []
    joined = Relation(select([*named(names), *counts], both), kinds, counted)
    return joined if inline else filtered(node.residual, joined, part)


def _countable(kind: JoinKind, left: Relation, right: Relation) -> tuple[Relation, Relation]:
    """Return both sides with counts, added up where it matters whether a row is there."""
    if kind is JoinKind.INNER:
        return left.counting(), right.counting()
    if kind in _ONE_SIDE:
        return left, right.netted("n > 0") if right.counted else right
    return left.netted(), right.netted()


def _pair(left: int, right: int, *, null_safe: bool) -> str:
    return f"c{left} {'<=>' if null_safe else '='} r{right}"


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(conditions) or "true"


def _renamed(right: Relation) -> str:
    items = [f"{name} AS r{i}" for i, name in enumerate(right.columns.names)]
    items += ["n AS rn"] if right.counted else []
    items = items or ["true AS rz"]
    return f"({select(items, right.source)})"
