"""EXPLAIN PLAN: a tree a person can read, with what each node costs and keeps.

One line per node: the operator and what it does; below it, indented, the columns, for a
maintained plan the cost of a change (``cost``) and the arrangements it reads, and then its
inputs. A part that occurs again is named once (``cte 1``) and referred to after that: it is
computed once.

Tests: tests/sql/golden/explain.spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from reclock.ids import ObjectId
from reclock.sql.cost import FLAT_PLACES, costs
from reclock.sql.plan.functions.aggregate import FAST
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Negate,
    Project,
    QueryPlan,
    Reduce,
    Threshold,
    TopK,
    Union,
    Window,
    walk,
)

if TYPE_CHECKING:
    from reclock.sql.plan.node import Node

_MAX_CONSTANT_ROWS = 3


Find = Callable[[ObjectId, tuple[int, ...]], str | None]
"""Names the arrangement of a catalog item by some columns that exists for others anyway."""


def explain(plan: QueryPlan) -> str:
    """Return the plan of a query that is answered once: what it computes, without upkeep."""
    lines = []
    if plan.order:
        order = ", ".join(str(k) for k in plan.order)
        lines.append(f"Answer ordered by {order}")
    lines += [_timeline(plan.root), *_Printer(plan.root, None).lines(plan.root, 0)]
    return "\n".join(lines)


def explain_maintained(node: Node, find: Find = lambda _item, _columns: None) -> str:
    """Return the plan of a view, with what each node costs and keeps."""
    return "\n".join([_timeline(node), *_Printer(node, find).lines(node, 0)])


def _timeline(node: Node) -> str:
    timeline = node.timeline.timeline
    return f"Timeline: {'any (constant)' if timeline is None else timeline}"


class _Printer:
    def __init__(self, root: Node, find: Find | None) -> None:
        self._find = find
        self._costs = {} if find is None else costs(root)
        uses = Counter(child for node in walk(root) for child in node.inputs)
        self._shared = {node for node, count in uses.items() if count > 1 and node.inputs}
        self._numbers: dict[Node, int] = {}

    def lines(self, node: Node, depth: int) -> list[str]:
        pad = "  " * depth
        title = _title(node)
        if node in self._shared:
            if node in self._numbers:
                return [f"{pad}cte {self._numbers[node]} (above)"]
            self._numbers[node] = len(self._numbers) + 1
            title = f"cte {self._numbers[node]}: {title}"
        columns = ", ".join(f"#{i} {c}" for i, c in enumerate(node.schema))
        made = [pad + title, f"{pad}  | columns: {columns or 'none'}"]
        if node.unique_keys:
            keys = sorted(sorted(k) for k in node.unique_keys)
            shown = ", ".join("(" + ", ".join(f"#{c}" for c in k) + ")" for k in keys)
            made.append(f"{pad}  | unique: {shown}")
        if self._find is not None:
            cost = self._costs[node]
            made.append(f"{pad}  | cost: {cost.text}")
            if cost.because is not None:
                made.append(f"{pad}  | not at the cost of the change: {cost.because}")
            made += [f"{pad}  | {fact}" for fact in _kept(node, self._find)]
        for child in node.inputs:
            made += self.lines(child, depth + 1)
        return made


def _columns(columns: tuple[int, ...]) -> str:
    return "(" + ", ".join(f"#{c}" for c in columns) + ")"


def _title(node: Node) -> str:  # noqa: PLR0911, PLR0912  # one case per node
    match node:
        case Get():
            return f"Get {node.name}"
        case Constant():
            shown = ", ".join(str(row) for row, _ in node.rows[:_MAX_CONSTANT_ROWS])
            more = ", …" if len(node.rows) > _MAX_CONSTANT_ROWS else ""
            return f"Constant {shown}{more}" if node.rows else "Empty"
        case Project():
            return "Project " + ", ".join(str(s) for _, s in node.outputs)
        case Filter():
            return "Filter " + " and ".join(str(p) for p in node.predicates)
        case FlatMap():
            return f"FlatMap {node.array}"
        case Join():
            pairs = [
                f"left #{p.left} {'is not distinct from' if p.null_safe else '='} right #{p.right}"
                for p in node.on
            ]
            conditions = pairs + [str(p) for p in node.residual]
            on = " on " + " and ".join(conditions) if conditions else ""
            return f"Join {node.kind.value}{on}"
        case Reduce():
            by = f" by {_columns(node.keys)}" if node.keys else ""
            calls = ", ".join(str(c) for _, c in node.aggregates)
            return f"Reduce{by}: {calls or 'keys only'}"
        case Distinct():
            return "Distinct"
        case TopK():
            by = f" of each {_columns(node.group)}" if node.group else ""
            order = ", ".join(str(k) for k in node.order) or "all columns"
            some = "all" if node.limit is None else str(node.limit)
            skip = f" after {node.offset}" if node.offset else ""
            return f"TopK {some}{skip}{by} ordered by {order}"
        case Window():
            calls = ", ".join(str(c) for _, c in node.calls)
            order = ", ".join(str(k) for k in node.order)
            by = f" partition by {_columns(node.partition)}" if node.partition else ""
            return f"Window {calls}{by}" + (f" order by {order}" if order else "")
        case Union():
            return f"Union of {len(node.members)}"
        case Negate():
            return "Negate"
        case Threshold():
            return "Threshold"
    return type(node).__name__


def _kept(node: Node, find: Find) -> list[str]:  # noqa: PLR0911  # one case per node
    """Return the state that the node reads, and whose it is."""
    match node:
        case Join():
            left, right = (p.left for p in node.on), (p.right for p in node.on)
            sides = ((node.left, tuple(left)), (node.right, tuple(right)))
            return [_arranged(side, by, find) for side, by in sides]
        case Reduce():
            totals = [c for _, c in node.aggregates if c.how == FAST]
            kept = [f"keeps totals{_by(node.input, node.keys)}"] if totals else []
            others = [c for _, c in node.aggregates if c.how != FAST]
            return kept + ([_arranged(node.input, node.keys, find)] if others else [])
        case Distinct() | Threshold():
            return [_arranged(node.inputs[0], tuple(range(node.width)), find)]
        case TopK() if node.limit is not None and node.limit + node.offset <= FLAT_PLACES:
            return [f"keeps {_name(node.input)} in buckets{_by(node.input, node.group)}"]
        case TopK():
            return [_arranged(node.input, node.group, find)]
        case Window():
            return [_arranged(node.input, node.partition, find)]
    return []


def _arranged(node: Node, columns: tuple[int, ...], find: Find) -> str:
    there = find(node.item, columns) if isinstance(node, Get) else None
    by = _by(node, columns)
    return f"keeps {_name(node)} arranged{by}" if there is None else f"uses {there}{by}"


def _name(node: Node) -> str:
    return node.name if isinstance(node, Get) else "its input"


def _by(node: Node, columns: tuple[int, ...]) -> str:
    names = ", ".join(node.schema[c].name for c in columns)
    return f" by ({names})" if columns else ""
