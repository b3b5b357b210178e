"""Plans as Spark SQL that computes the whole relation at once: one-shot SELECT.

``query`` writes a plan as a SELECT over the tables that hold the leaves. Every node has its
file: ``leaf``, ``row``, ``join``, ``group``, ``order``, ``multiset``; what they pass on is a
``relation``. A node that is used twice is a part with a name.

The answer is that of the maintained view, or its error: a row without a value raises
``SQLSTATE|message`` (``spark.errors`` makes it an error again), if and only if that row
would be an error row of the view. Cost: that of the batch query.

Tests: tests/spark/test_batch.py compares with ``model.evaluate``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported
from reclock.spark.batch import group, join, leaf, multiset, order, row
from reclock.spark.batch.relation import LEVELS, Relation, named, select
from reclock.spark.columns import total_order
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

    import pyarrow as pa

    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan


SHARED_NODES: Final = 30
"""A part of more nodes than this that is used more than once is computed once, before."""


@dataclass(frozen=True, slots=True)
class Part:
    """A relation that later text reads by its name.

    Spark puts a named relation in the place of each use, and plans it there: a plan whose
    parts share parts would grow without bound. So what is used often and is not small is
    ``computed`` once, and its rows are what is named.
    """

    name: str
    text: str
    computed: bool


@dataclass(frozen=True, slots=True)
class Script:
    """The parts of a query, in order, and the SELECT that is its answer.

    ``constants`` are tables that all of them may read: the rows of long constants.
    """

    parts: tuple[Part, ...]
    text: str
    constants: tuple[tuple[str, pa.Table], ...] = ()


def query(
    plan: QueryPlan,
    tables: Mapping[ObjectId, str],
    prefix: str = "part",
    *,
    exact: bool = False,
) -> Script:
    """Return the text of a query's visible columns, in its order.

    ``tables`` has for each leaf the table of the session that holds its stored columns.
    What comes out is as Arrow stores it too. The names of parts begin with ``prefix``.
    ``exact`` adds up floats as views do (``exact_text``).
    """
    renderer = _Renderer(plan.root, tables, prefix, exact=exact)
    made = renderer.whole()
    visible = [f"c{i}" for i in range(plan.visible)]
    text = select(named(visible), made.source)
    if plan.order:
        text += f" ORDER BY {total_order(plan.order, made.columns)}"
    return Script(tuple(renderer.parts), text, tuple(renderer.constants))


class _Renderer:
    def __init__(
        self, root: Node, tables: Mapping[ObjectId, str], prefix: str, *, exact: bool
    ) -> None:
        self._tables = tables
        self._exact = exact
        self._prefix = prefix
        self._root = transform(root, _lowered)
        self._uses = Counter(child for node in walk(self._root) for child in node.inputs)
        self._done: dict[Node, Relation] = {}
        self._sizes: dict[Node, int] = {}
        self._levels: dict[Node, int] = {}
        self.parts: list[Part] = []
        self.constants: list[tuple[str, pa.Table]] = []

    def whole(self) -> Relation:
        """Return the rows of the root."""
        return self._relation(self._root).expanded()

    def _relation(self, node: Node) -> Relation:
        made = self._done.get(node)
        if made is None:
            made = self._render(node)
            self._sizes[node] = 1 + sum(self._sizes[child] for child in node.inputs)
            self._levels[node] = 1 + max((self._levels[child] for child in node.inputs), default=0)
            if isinstance(node, Get | Constant):
                pass
            elif self._uses[node] > 1 or self._levels[node] > LEVELS:
                made = self._named(node, made)
            self._done[node] = made
        return made

    def _named(self, node: Node, made: Relation) -> Relation:
        """Make a part of a relation that is used more than once, or has many levels."""
        computed = self._uses[node] > 1 and self._sizes[node] > SHARED_NODES
        if computed:
            self._sizes[node] = 1
        self._levels[node] = 0
        name = self._part(made.text, computed=computed)
        return Relation(f"SELECT * FROM {name}", made.kinds, made.counted, table=name)

    def _part(self, text: str, *, computed: bool = False) -> str:
        name = f"{self._prefix}_{len(self.parts)}"
        self.parts.append(Part(name, text, computed))
        return name

    def _constant(self, node: Constant) -> Relation:
        if not leaf.is_long(node):
            return leaf.constant(node)
        name = f"{self._prefix}_rows_{len(self.constants)}"
        self.constants.append((name, leaf.table_of(node)))
        return leaf.named_constant(node, name)

    def _render(self, node: Node) -> Relation:  # noqa: PLR0911, PLR0912 - one case per node
        inputs = [self._relation(child) for child in node.inputs]
        match node:
            case Get():
                return leaf.leaf(self._tables[node.item], [c.type for c in node.schema])
            case Constant():
                return self._constant(node)
            case Project():
                return row.project(node, inputs[0], self._part)
            case Filter():
                return row.filtered(node.predicates, inputs[0], self._part)
            case FlatMap():
                return row.flat_map(node, inputs[0], self._part)
            case Join():
                return join.join(node, inputs[0], inputs[1], self._part)
            case Reduce():
                return group.reduce(node, inputs[0], exact=self._exact)
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
        raise NotSupported(message, hint="make a materialized view of the query")


def _lowered(node: Node) -> Node:
    return lower_joins(node) if isinstance(node, Join) and join.needs_lowering(node) else node
