"""Common sub-plans: equal nodes become one object, which is rendered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.relation import transform

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node


def share(node: Node) -> Node:
    """Return ``node`` with equal parts identical."""
    met: dict[Node, Node] = {}
    return transform(node, lambda n: met.setdefault(n, n))
