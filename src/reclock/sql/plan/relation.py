"""The relational plan as a whole: all nodes, and how to walk and rebuild them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reclock.sql.plan.join import Join, JoinKind, KeyPair
from reclock.sql.plan.leaf import Constant, Get
from reclock.sql.plan.node import Node, SortKey
from reclock.sql.plan.order import Frame, TopK, Window, WindowCall
from reclock.sql.plan.reduce import AggregateCall, Distinct, Reduce
from reclock.sql.plan.row import Filter, FlatMap, Project
from reclock.sql.plan.scalar import ColumnRef
from reclock.sql.plan.setop import Negate, Threshold, Union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.sql.schema import Schema


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query: its rows, and the order a reader wants them in.

    ``root`` may have columns beyond the first ``visible`` ones that only serve ``order``.
    """

    root: Node
    visible: int
    order: tuple[SortKey, ...] = ()

    @property
    def relation(self) -> Node:
        """The rows without what only serves the order: what a view stores."""
        if self.visible == self.root.width:
            return self.root
        return keep(self.root, range(self.visible))


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return ``node`` over other inputs."""
    match node:
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case Union():
            return replace(node, members=inputs)
        case Get() | Constant():
            return node
    return replace(node, input=inputs[0])  # type: ignore[call-arg]  # all others have one input


def walk(node: Node) -> Iterator[Node]:
    """Yield every distinct node once, inputs first."""
    seen: set[Node] = set()

    def visit(at: Node) -> Iterator[Node]:
        if at in seen:
            return
        seen.add(at)
        for child in at.inputs:
            yield from visit(child)
        yield at

    yield from visit(node)


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Apply ``change`` to every node, inputs first; a shared node is changed once."""
    done: dict[Node, Node] = {}

    def visit(at: Node) -> Node:
        made = done.get(at)
        if made is None:
            inputs = tuple(visit(i) for i in at.inputs)
            made = change(at if inputs == at.inputs else with_inputs(at, inputs))
            done[at] = made
        return made

    return visit(node)


def column(node: Node, index: int) -> ColumnRef:
    """Return a reference to a column of ``node``."""
    of = node.schema[index]
    return ColumnRef(index, of.type, of.nullable, of.name)


def keep(node: Node, columns: range | tuple[int, ...]) -> Node:
    """Project ``node`` to some of its columns."""
    chosen = tuple(columns)
    if chosen == tuple(range(node.width)):
        return node
    return Project(node, tuple((node.schema[c].name, column(node, c)) for c in chosen))


def empty(schema: Schema) -> Constant:
    """Return the relation without rows."""
    return Constant(schema, ())


__all__ = [
    "AggregateCall",
    "Constant",
    "Distinct",
    "Filter",
    "FlatMap",
    "Frame",
    "Get",
    "Join",
    "JoinKind",
    "KeyPair",
    "Negate",
    "Node",
    "Project",
    "QueryPlan",
    "Reduce",
    "SortKey",
    "Threshold",
    "TopK",
    "Union",
    "Window",
    "WindowCall",
    "column",
    "empty",
    "keep",
    "transform",
    "walk",
    "with_inputs",
]
