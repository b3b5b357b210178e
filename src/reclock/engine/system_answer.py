"""System relations in queries: the rows of a moment in their place, or a refusal.

Tests: tests/system/test_system.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.errors import NotSupported
from reclock.sql.plan.relation import Constant, Get, transform, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reclock.catalog.system_relation import SystemRelation
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan


def system_relations(
    node: Node, known: Mapping[ObjectId, SystemRelation]
) -> Iterator[SystemRelation]:
    """Yield the system relations that a plan reads, each once; ``known`` are all of them."""
    for part in walk(node):
        if isinstance(part, Get) and part.item in known:
            yield known[part.item]


def with_rows(
    plan: QueryPlan, known: Mapping[ObjectId, SystemRelation], moment: Callable[[], object]
) -> QueryPlan:
    """Return ``plan`` with the rows of one moment in the place of each system relation.

    The same relation twice has the same rows. ``moment`` is asked only if there is one.
    """
    found = list(system_relations(plan.root, known))
    if not found:
        return plan
    now = moment()
    rows = {relation.id: Counter(relation.rows(now)) for relation in found}

    def constant(node: Node) -> Node:
        if isinstance(node, Get) and node.item in rows:
            return Constant(node.columns, tuple(rows[node.item].items()))
        return node

    return replace(plan, root=transform(plan.root, constant))


def refuse_maintained(node: Node, known: Mapping[ObjectId, SystemRelation], what: str) -> None:
    """Refuse to maintain a plan that reads a system relation: it has no history."""
    for relation in system_relations(node, known):
        message = f"{what} over {relation} is not supported"
        detail = "system relations show the state of now: they have no history"
        hint = "select from it, or make a view; INSERT … SELECT keeps what it shows in a table"
        raise NotSupported(message, detail=detail, hint=hint)
