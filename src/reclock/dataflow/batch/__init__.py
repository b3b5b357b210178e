"""Plans as Spark SQL that computes the whole relation at once: one-shot SELECT.

``render`` writes a plan as one SELECT over the tables that hold the leaves; ``query``
adds the order and the visible columns of a query. Every node has its file: ``leaf``,
``row``, ``join``, ``group``, ``order``, ``multiset``; what they pass on is a ``relation``.
A node that is used twice is a common table expression.

The answer is that of the maintained view, or its error: a row without a value raises
``SQLSTATE|message`` (``spark_errors`` makes it an error again), if and only if that row
would be an error row of the view. Cost: that of the batch query.

Tests: tests/dataflow/test_batch.py compares with ``reclock.testing.evaluate``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reclock.dataflow.batch import group, join, leaf, multiset, order, row
from reclock.dataflow.batch.relation import Relation, named, select
from reclock.dataflow.columns import total_order
from reclock.dataflow.types import from_spark
from reclock.errors import NotSupported
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Negate,
    Project,
    Reduce,
    Threshold,
    TopK,
    Union,
    Window,
    transform,
    walk,
)
from reclock.sql.rewrite.lower_joins import lower_joins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan


def query(plan: QueryPlan, tables: Mapping[ObjectId, str], *, stored: bool = True) -> str:
    """Return the SELECT of a query's visible columns, in its order.

    ``tables`` has for each leaf the table of the session that holds its stored columns.
    What comes out is as Arrow stores it too, unless ``stored`` is false.
    """
    shared, made = _Renderer(plan.root, tables).whole(plan.root)
    kinds = made.kinds[: plan.visible]
    visible = [from_spark(f"c{i}", k) if stored else f"c{i}" for i, k in enumerate(kinds)]
    text = shared + select(named(visible), made.source)
    return f"{text} ORDER BY {total_order(plan.order, made.columns)}" if plan.order else text


def render(node: Node, tables: Mapping[ObjectId, str]) -> str:
    """Return the SELECT of all columns of a plan as Arrow stores them, in no order."""
    shared, made = _Renderer(node, tables).whole(node)
    stored = [from_spark(f"c{i}", kind) for i, kind in enumerate(made.kinds)]
    return shared + select(named(stored), made.source)


class _Renderer:
    def __init__(self, root: Node, tables: Mapping[ObjectId, str]) -> None:
        self._tables = tables
        self._root = transform(root, _lowered)
        self._uses = Counter(child for node in walk(self._root) for child in node.inputs)
        self._done: dict[Node, Relation] = {}
        self._shared: list[str] = []

    def whole(self, root: Node) -> tuple[str, Relation]:
        """Return the common table expressions and the rows of the root."""
        made = self._relation(self._root).expanded()
        shared = f"WITH {', '.join(self._shared)} " if self._shared else ""
        assert len(made.kinds) == root.width
        return shared, made

    def _relation(self, node: Node) -> Relation:
        made = self._done.get(node)
        if made is None:
            made = self._render(node)
            if self._uses[node] > 1 and not isinstance(node, Get | Constant):
                name = f"t{len(self._shared)}"
                self._shared.append(f"{name} AS ({made.text})")
                text = f"SELECT * FROM {name}"
                made = Relation(text, made.kinds, made.counted, table=name)
            self._done[node] = made
        return made

    def _render(self, node: Node) -> Relation:  # noqa: PLR0911, PLR0912 - one case per node
        inputs = [self._relation(child) for child in node.inputs]
        match node:
            case Get():
                return leaf.leaf(self._tables[node.item], [c.type for c in node.schema])
            case Constant():
                return leaf.constant(node)
            case Project():
                return row.project(node, inputs[0])
            case Filter():
                return row.filtered(node.predicates, inputs[0])
            case FlatMap():
                return row.flat_map(node, inputs[0])
            case Join():
                return join.join(node, inputs[0], inputs[1])
            case Reduce():
                return group.reduce(node, inputs[0])
            case Distinct():
                return group.distinct(inputs[0])
            case TopK():
                return order.top_k(node, inputs[0])
            case Window():
                return order.window(node, inputs[0])
            case Union():
                return multiset.union(inputs)
            case Negate():
                return multiset.negate(inputs[0])
            case Threshold():
                return multiset.threshold(inputs[0])
        message = f"a plan with {type(node).__name__} cannot be computed in batch"
        raise NotSupported(message)


def _lowered(node: Node) -> Node:
    return lower_joins(node) if isinstance(node, Join) and join.needs_lowering(node) else node
