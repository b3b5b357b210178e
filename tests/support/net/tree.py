"""The text of a query as a tree: what it can shrink to, and an equal way to say it.

A ``Node`` is a piece of text of a certain sort (a value of a type, a condition, a query with
certain columns) made of strings and nodes. Whatever has the same sort may stand in its place, as
far as grammar goes; whether names still mean something is for PostgreSQL to say. ``plain`` is the
simplest text of that sort. ``twin`` says the same by PostgreSQL's manual in other words. ``rows``
is, of a query that computes something of every row of others, the query of those rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Part = "str | Node"


class Node:
    """A piece of the text of a query."""

    __slots__ = ("parts", "plain", "rows", "sort", "twin")

    def __init__(
        self,
        sort: str,
        parts: Sequence[str | Node],
        plain: str | None = None,
        twin: Sequence[str | Node] | None = None,
    ) -> None:
        self.sort = sort
        self.parts = list(parts)
        self.plain = plain
        self.twin = twin
        self.rows: Node | None = None

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def retold(self) -> str:
        """Return the text in which every part that has a twin is its twin."""
        parts = self.parts if self.twin is None else self.twin
        return "".join(p if isinstance(p, str) else p.retold() for p in parts)


class Items(Node):
    """Things of which any but the last may be left out."""

    __slots__ = ("separator",)

    def __init__(self, items: Sequence[str | Node], separator: str = ", ") -> None:
        super().__init__("items", items)
        self.separator = separator

    def __str__(self) -> str:
        return self.separator.join(map(str, self.parts))

    def retold(self) -> str:
        return self.separator.join(p if isinstance(p, str) else p.retold() for p in self.parts)


def laws(node: Node) -> set[str]:
    """Return by which laws ``retold`` says ``node`` in other words."""
    return {
        "partitions" if of.sort.startswith("q:") else "manual"
        for of in walk(node)
        if of.twin is not None
    }


def maybe(*parts: str | Node) -> Node:
    """Return a clause that can be left out."""
    return Node("clause", parts, plain="")


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and all nodes in it, outermost first."""
    yield node
    for part in node.parts:
        if isinstance(part, Node):
            yield from walk(part)


def smaller(root: Node) -> Iterator[Node]:
    """Yield trees that have one step less than ``root``: great steps first."""
    for node in list(walk(root)):
        if node.plain is not None and str(node) != node.plain:
            yield _replaced(root, node, Node(node.sort, [node.plain]))
        for below in walk(node):
            if (
                below is not node
                and below.sort == node.sort
                and below.sort not in {"clause", "items"}
            ):
                yield _replaced(root, node, below)
        if isinstance(node, Items) and len(node.parts) > 1:
            for at in range(len(node.parts)):
                kept = [*node.parts[:at], *node.parts[at + 1 :]]
                yield _replaced(root, node, Items(kept, node.separator))


def _replaced(root: Node, old: Node, new: Node) -> Node:
    if root is old:
        return new
    if not any(isinstance(p, Node) for p in root.parts):
        return root
    parts = [_replaced(p, old, new) if isinstance(p, Node) else p for p in root.parts]
    if isinstance(root, Items):
        return Items(parts, root.separator)
    made = Node(root.sort, parts, root.plain)
    if root.rows is not None:
        made.rows = _replaced(root.rows, old, new)
    return made
