"""Two projections in a row are one, and one that changes nothing is none.

An inner expression that is more than a column is merged only where it is used once, so
that nothing is computed twice.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reclock.sql.plan.relation import Project, transform
from reclock.sql.plan.scalar import ColumnRef, Literal, substituted, walk

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node


def merge_projects(node: Node) -> Node:
    """Merge projections, and drop those that keep every column in place."""
    return transform(node, lambda n: _project(n) if isinstance(n, Project) else n)


def _project(node: Project) -> Node:
    below = node.input
    if isinstance(below, Project):
        uses = Counter(
            s.index for _, scalar in node.outputs for s in walk(scalar) if isinstance(s, ColumnRef)
        )
        inner = tuple(s for _, s in below.outputs)
        if all(isinstance(s, ColumnRef | Literal) or uses[i] <= 1 for i, s in enumerate(inner)):
            outputs = tuple((n, substituted(s, inner)) for n, s in node.outputs)
            return _project(Project(below.input, outputs))
    same = len(node.outputs) == below.width and all(
        isinstance(s, ColumnRef) and s.index == i for i, (_, s) in enumerate(node.outputs)
    )
    return below if same else node
