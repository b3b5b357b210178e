"""The cost of a change at each node of a maintained plan, and the limit of that cost.

Model. Let the input of a tick be a change of n rows, S the rows that are kept, k a number
that stands in the query's text. A node *keeps up* if a change costs O(n · log S) and what
it brings about: its matches, its groups. ::

    Project, Filter, FlatMap, Union, Negate    the changed rows
    Filter by mz_now()                         the changed rows, and those whose time has come
    Distinct, Threshold                        the changed rows: a count per row
    Join on equal columns                      the changed rows and their matches
    Reduce: count, sum, avg, min, max …        the changed rows
    Reduce: every other aggregate              the rows of the changed groups
    Window                                     the rows of the changed partitions
    TopK of at most ``FLAT_PLACES`` places     the changed rows and k
    TopK of more, or without a limit           the rows of the changed groups

Then what does not keep up is a group that is the whole input, or a join that must try
every row: a Window without PARTITION BY, a Reduce without keys that recomputes, a TopK
without a group and of many places, and a join without an equality. They read everything
for every change: ``check_cost`` refuses them (0A000), naming the node and the way out,
unless the user allows it (``allow_full_recompute``).

They are not refused over a relation that is *bounded* by the text of the query: constants
(they never change), at most one row (a scalar subquery, a total), the first k rows, and
whatever is made of bounded ones alone. A join of one bounded side without an equality
costs the changed rows of the other side; when the bounded one changes, so may all that is
joined with it, and that is the change of the answer itself.

Tests: tests/sql/test_cost.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported
from reclock.sql.plan.functions.aggregate import FAST, HEAD
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Project,
    Reduce,
    Threshold,
    TopK,
    Window,
    walk,
)
from reclock.sql.plan.temporal import is_temporal

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node

FLAT_PLACES: Final = 100
"""The first so many rows of a group are kept by a tournament, flat in the group's size."""

SINGLE_ROW: Final = "any_row"
"""The value of a subquery that must not have a second row."""

OPTION: Final = "WITH (allow_full_recompute = true)"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a change costs; ``because`` and ``instead`` are for one of the whole input."""

    text: str
    because: str | None = None
    instead: str = ""


def check_cost(node: Node, *, allowed: bool, position: int | None = None) -> None:
    """Refuse a maintained plan of which some node cannot keep up, unless it is allowed."""
    if allowed:
        return
    for cost in costs(node).values():
        if cost.because is not None:
            message = f"this view cannot be maintained at the cost of a change: {cost.because}"
            detail = f"a change would cost {cost.text}"
            hint = f"{cost.instead}, or write {OPTION} after the view's name to pay for it"
            raise NotSupported(message, detail=detail, hint=hint, position=position)


def costs(root: Node) -> dict[Node, Cost]:
    """Return what a change of its inputs costs each node of a maintained plan."""
    return _Costs(root).found


class _Costs:
    """One pass from the leaves up; ``bounded`` and ``constant`` are the nodes that are so."""

    def __init__(self, root: Node) -> None:
        self.found: dict[Node, Cost] = {}
        self._bounded: set[Node] = set()
        self._constant: set[Node] = set()
        for node in walk(root):
            changes = isinstance(node, Get) or is_temporal(node)
            if not changes and all(i in self._constant for i in node.inputs):
                self._constant.add(node)
            if self._is_bounded(node):
                self._bounded.add(node)
            self.found[node] = self._cost(node)

    def _is_bounded(self, node: Node) -> bool:
        if frozenset() in node.unique_keys or node in self._constant:
            return True
        if isinstance(node, TopK) and not node.group and node.limit is not None:
            return node.limit <= FLAT_PLACES or node.input in self._bounded
        if isinstance(node, Get | FlatMap):
            return False
        return all(i in self._bounded for i in node.inputs)

    def _cost(self, node: Node) -> Cost:  # noqa: PLR0911 - one case per node
        match node:
            case Constant():
                return Cost("nothing: it never changes")
            case Join():
                return self._join(node)
            case Reduce():
                return self._reduce(node)
            case Window():
                return self._window(node)
            case TopK():
                return self._top_k(node)
            case Distinct() | Threshold():
                return Cost("the changed rows (a count per row)")
            case Filter() if is_temporal(node):
                return Cost("the changed rows and those whose time has come")
        return Cost("the changed rows")

    def _join(self, node: Join) -> Cost:
        if node.on:
            return Cost("the changed rows and their matches")
        if node.left in self._constant or node.right in self._constant:
            return Cost("the changed rows (the other side is constant)")
        for few, many, side in (("left", "right", node.left), ("right", "left", node.right)):
            if side in self._bounded:
                return Cost(f"the changed rows; all of the {many} side when the {few} one changes")
        both = f"a join of {_of(node.left)} and {_of(node.right)}"
        missing = "no equality in its condition" if node.residual else "no condition"
        instead = "join on columns that must be equal, for instance times rounded to the hour"
        return Cost(
            "the changed rows × all rows of the other side", f"{both} has {missing}", instead
        )

    def _reduce(self, node: Reduce) -> Cost:
        calls = [call.function for _, call in node.aggregates]
        anew = [f.name for f in calls if f.how not in {FAST, HEAD}]
        if not anew:
            how = ", ".join(sorted({f.how for f in calls}))
            return Cost(f"the changed rows ({how})" if how else "the changed rows")
        if node.keys or node.input in self._bounded:
            return Cost("the rows of the changed groups, recomputed")
        anew = [name for name in anew if name != SINGLE_ROW]
        if not anew:
            return Cost("the changed rows (there must not be a second row)")
        because = f"{anew[0]} over all of {_of(node.input)} is recomputed"
        instead = f"group by something, so that {anew[0]} is computed for the changed groups"
        return Cost("all rows, recomputed", because, instead)

    def _window(self, node: Window) -> Cost:
        if node.partition or node.input in self._bounded:
            return Cost("the rows of the changed partitions, recomputed")
        name = node.calls[0][1].function.name
        because = f"{name} over all of {_of(node.input)} has no PARTITION BY"
        few = f"row_number() OVER (ORDER BY …) <= {FLAT_PLACES}"
        instead = f"add a PARTITION BY, or keep the first rows only by {few}"
        return Cost("all rows, recomputed", because, instead)

    def _top_k(self, node: TopK) -> Cost:
        places = None if node.limit is None else node.limit + node.offset
        if places is not None and places <= FLAT_PLACES:
            return Cost("the changed rows (a tournament of the first rows)")
        if node.group or node.input in self._bounded:
            return Cost("the rows of the changed groups, sorted again")
        rows = f"of all of {_of(node.input)} are sorted again"
        some = f"all but the first {node.offset}" if places is None else f"the first {places}"
        instead = f"keep at most {FLAT_PLACES} rows, and leave the rest to the reader's query"
        return Cost("all rows, sorted again", f"{some} rows {rows}", instead)


def _of(node: Node) -> str:
    """Name what a node reads, for a person."""
    at = node
    while isinstance(at, Project | Filter):
        at = at.input
    if isinstance(at, Get):
        return at.name
    names = dict.fromkeys(part.name for part in walk(at) if isinstance(part, Get))
    return f"a query over {', '.join(names)}"
