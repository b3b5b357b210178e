"""EXPLAIN PLAN: a tree a person can read, with what each node costs and keeps.

One line per node: the operator and what it does; below it, indented, the columns, the cost
of a change, the arrangements it needs, and then its inputs. A part that occurs again is
named once (``cte 1``) and referred to after that: it is computed once.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

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


def explain(plan: QueryPlan) -> str:
    """Return the plan of a query as text."""
    lines = []
    if plan.order:
        order = ", ".join(str(k) for k in plan.order)
        lines.append(f"Answer ordered by {order}")
    lines.append(explain_node(plan.root))
    return "\n".join(lines)


def explain_node(node: Node) -> str:
    """Return the tree below ``node`` as text, headed by its timeline."""
    timeline = node.timeline.timeline
    head = f"Timeline: {'any (constant)' if timeline is None else timeline}"
    return "\n".join([head, *_Printer(node).lines(node, 0)])


class _Printer:
    def __init__(self, root: Node) -> None:
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
        made += [f"{pad}  | {fact}" for fact in _costs(node)]
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


def _name(node: Node) -> str:
    return node.name if isinstance(node, Get) else "its input"


def _names(node: Node, columns: tuple[int, ...]) -> str:
    return "(" + ", ".join(node.schema[c].name for c in columns) + ")"


def _costs(node: Node) -> list[str]:  # noqa: PLR0911  # one case per node
    match node:
        case Constant():
            return ["cost: nothing"]
        case Join():
            if not node.on:
                return ["cost: changed rows × all rows of the other side (no equality)"]
            sides = (
                (node.left, tuple(p.left for p in node.on)),
                (node.right, tuple(p.right for p in node.on)),
            )
            probes = [f"probes arrangement of {_name(n)} by {_names(n, c)}" for n, c in sides]
            return ["cost: changed rows and their matches", *probes]
        case Reduce():
            how = sorted({c.how for _, c in node.aggregates})
            unit = "changed rows" if node.accumulates else "changed groups"
            return [f"cost: {unit}" + (f" ({', '.join(how)})" if how else "")]
        case Distinct() | Threshold():
            return ["cost: changed rows (one count per row)"]
        case TopK():
            return ["cost: changed rows (head of a sorted arrangement)"]
        case Window():
            partition = _names(node.input, node.partition)
            return [f"cost: changed groups (arranged by {partition})"]
    return ["cost: changed rows"]
