"""The order of the rewrites.

``SIMPLIFY`` runs until nothing changes (or a bound is reached), then joins are lowered,
unless a one-shot reader does outer joins itself, and what that left over is cleaned up.
The columns of the result keep their names, types and order. Every rule, and the whole, leave
results as they were: tests/sql/test_rewrite.py; each alone: tests/sql/golden/<rule>.spec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from reclock.sql.plan.node import Node, PlanError
from reclock.sql.plan.relation import Project, QueryPlan, column
from reclock.sql.rewrite.fold_constants import fold_constants
from reclock.sql.rewrite.join_keys import join_keys
from reclock.sql.rewrite.lower_joins import lower_joins
from reclock.sql.rewrite.merge_projects import merge_projects
from reclock.sql.rewrite.propagate_empty import propagate_empty
from reclock.sql.rewrite.prune_columns import prune_columns
from reclock.sql.rewrite.push_filters import push_filters
from reclock.sql.rewrite.remove_distinct import remove_distinct
from reclock.sql.rewrite.share import share
from reclock.sql.rewrite.single_row import single_row
from reclock.sql.rewrite.top_k import top_k

Rule = Callable[[Node], Node]

SIMPLIFY: Final[tuple[Rule, ...]] = (
    fold_constants,
    propagate_empty,
    single_row,
    merge_projects,
    push_filters,
    join_keys,
    top_k,
    remove_distinct,
    prune_columns,
    merge_projects,
)
FINISH: Final[tuple[Rule, ...]] = (remove_distinct, merge_projects, propagate_empty, share)
_MAX_PASSES = 10


@dataclass(frozen=True, slots=True)
class RewriteContext:
    """What the rewriting is for: ``outer_joins`` keeps them, for a reader that has its own."""

    outer_joins: bool = False


def rewrite(node: Node, context: RewriteContext) -> Node:
    """Return a plan of the same rows and columns that costs less."""
    made = node
    for _ in range(_MAX_PASSES):
        before = made
        for rule in SIMPLIFY:
            made = rule(made)
        if made == before:
            break
    if not context.outer_joins:
        made = lower_joins(made)
    for rule in FINISH:
        made = rule(made)
    return _named(made, node)


def rewrite_query(plan: QueryPlan, context: RewriteContext) -> QueryPlan:
    """Rewrite the rows of a query; its order and visible columns stay."""
    return replace(plan, root=rewrite(plan.root, context))


def _named(node: Node, like: Node) -> Node:
    """Give the columns of ``node`` the names they had, and check their types."""
    if [c.type for c in node.schema] != [c.type for c in like.schema]:
        message = f"a rewrite changed {like.schema} to {node.schema}"
        raise PlanError(message)
    if node.schema.names == like.schema.names:
        return node
    return Project(node, tuple((n, column(node, i)) for i, n in enumerate(like.schema.names)))
