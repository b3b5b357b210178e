"""Rows that a key tells apart are distinct already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.relation import Distinct, transform

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node


def remove_distinct(node: Node) -> Node:
    """Drop Distinct over what has a unique key."""
    return transform(node, _node)


def _node(node: Node) -> Node:
    if isinstance(node, Distinct) and node.input.unique_keys:
        return node.input
    return node
