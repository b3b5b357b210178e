"""Our ways to an answer, each for many queries at once.

``planned``: the plan as it was built, evaluated in Python: no rewrite, no operator.
``rewritten``: the same after all rewrites. ``Kept``: all queries as views of one graph, filled
early or late, through all writes. ``direct``: a one-off query answered from the runs, where that
can be. ``asked``: one Spark job for all queries, each with a tag and
columns of its own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from graphs.collections import arranged
from graphs.memory_graph import MemoryGraph, hashable
from model.evaluate import evaluate
from model.evaluate_aggregate import KNOWN as AGGREGATES
from model.evaluate_scalar import knows
from net.judge import Answer, plain, single
from net.tables import CATALOG, SCHEMA
from reclock.arrangement.store import LocalStore
from reclock.dataflow.direct import direct
from reclock.dataflow.scan import Arranged
from reclock.dataflow.types import arrow_types
from reclock.errors import Error
from reclock.ids import ObjectId
from reclock.spark.peek import peek
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.decorrelate import scalars_of
from reclock.sql.plan.relation import (
    Distinct,
    Project,
    QueryPlan,
    Reduce,
    Union,
    column,
    walk,
)
from reclock.sql.plan.scalar import And, Literal, Or, can_fail
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.schema import Schema
from reclock.sql.types import INTEGER, REAL
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from net.tables import Contents, Row
    from reclock.dataflow.evaluate import Evaluator
    from reclock.spark.session import Spark
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar


def plan_of(text: str) -> QueryPlan | Error:
    """Return the plan of a query, as a view would have it, or why there is none."""
    try:
        return plan_query(parse_query(text), CATALOG, maintained=True)
    except Error as error:
        return error


def type_names(plan: QueryPlan) -> tuple[str, ...]:
    return tuple(str(c.type).partition("(")[0] for c in plan.relation.schema)


def failed(error: Error) -> Answer:
    return Answer(None, (), error.code, error.message)


def _plain(row: Row, schema: Schema) -> Row:
    """Return a row as the judge has it."""
    pairs = zip(row, schema, strict=True)
    return plain([single(v) if c.type == REAL and v is not None else v for v, c in pairs])


def computed(node: Node, contents: Contents) -> Answer | None:
    """Return the rows of ``node`` by the reference evaluator; None: it lacks a function."""
    if not is_known(node):
        return None
    try:
        rows = evaluate(node, contents)
        return Answer(Counter({_plain(r, node.schema): n for r, n in rows.items()}))
    except Error as error:
        return failed(error)


def is_known(node: Node) -> bool:
    """Return whether the reference evaluator has all functions of a plan."""
    return all(
        all(map(knows, scalars_of(at)))
        and (
            not isinstance(at, Reduce) or {c.function.name for _, c in at.aggregates} <= AGGREGATES
        )
        for at in walk(node)
    )


def is_loose(node: Node) -> bool:
    """Return whether something that can fail is computed for rows that a planner chooses.

    What is shown is computed for all rows that are shown. A condition, or a column of a subquery,
    is computed for more or fewer of them, as others come before it; so are parts of AND and OR, and
    what a window function takes (PostgreSQL computes ``nth_value`` for the rows that it needs).
    """
    while isinstance(node, Project | Reduce | Distinct):
        if isinstance(node, Project) and any(map(_chooses, (s for _, s in node.outputs))):
            return True
        (node,) = node.inputs
    return any(can_fail(s) for at in walk(node) for s in scalars_of(at))


def _chooses(scalar: Scalar) -> bool:
    return any(isinstance(s, And | Or) and can_fail(s) for s in walk_scalar(scalar))


class Kept:
    """Queries as views of one graph, through a history: ``first`` is when they are made."""

    def __init__(
        self, plans: Sequence[Node], evaluator: Evaluator, history: Sequence[Contents], first: int
    ) -> None:
        self._ids = [ObjectId(f"u{100 + i}") for i in range(len(plans))]
        self._graph = MemoryGraph(
            dict(zip(self._ids, plans, strict=True)), evaluator, tables=CATALOG.items
        )
        self._graph.hydrate(history[first], first + 1)
        for at in range(first + 1, len(history)):
            logs = {name: [] for name in SCHEMA}
            for name in SCHEMA:
                before, after = history[at - 1][name], history[at][name]
                for row in {*before, *after}:
                    if after[row] != before[row]:
                        logs[name].append((row, at + 1, after[row] - before[row]))
            self._graph.tick(logs, range(at + 1, at + 2))

    def answer(self, number: int, at: int) -> Answer:
        errors = [row for row, n in self._graph.errors_at(self._ids[number], at + 1).items() if n]
        if errors:
            return Answer(None, (), str(errors[0][0]), str(errors[0][1]))
        rows = self._graph.rows_at(self._ids[number], at + 1)
        schema = self._graph.plans[self._ids[number]].schema
        return Answer(Counter({_plain(r, schema): n for r, n in rows.items()}))


Leaves = dict[ObjectId, list[Arranged]]


def leaves_of(contents: Contents, place: Path) -> Leaves:
    """Return the tables as runs: by all columns, and by the first."""
    store = LocalStore(place)
    return {
        item.id: [
            arranged(arrow_types(item.schema), key, [(contents[name], 1)], store)
            for key in (tuple(range(len(item.schema))), (0,))
        ]
        for name, item in CATALOG.items.items()
    }


def directly(text: str, leaves: Leaves) -> Answer | None:
    """Return what a one-off query has straight from the runs; None: that is for Spark."""
    plan = rewrite_query(plan_query(parse_query(text), CATALOG), RewriteContext(outer_joins=True))
    found = direct(plan, leaves, Timestamp(1))
    if found is None:
        return None
    return Answer(Counter(_rows(found, plan)))


def _rows(found: pa.Table, plan: QueryPlan) -> list[Row]:
    schema = Schema(plan.root.schema.columns[: plan.visible])
    columns = [
        hashable(values.combine_chunks(), column.type)
        for values, column in zip(found.columns, schema, strict=True)
    ]
    rows = list(zip(*columns, strict=True)) if columns else [()] * found.num_rows
    return [_plain(row, schema) for row in rows]


def asked(
    spark: Spark, plans: Sequence[QueryPlan], contents: Contents, place: Path
) -> list[Answer]:
    """Return the answers to all queries, by one job."""
    together = tagged(plans) if len(plans) > 1 else plans[0]
    made = rewrite_query(together, RewriteContext(outer_joins=True))
    try:
        found = peek(spark, made, leaves_of(contents, place), Timestamp(1))
        rows = _rows(found, made)
    except Error as error:
        return [failed(error)] * len(plans)
    if len(plans) == 1:
        return [Answer(Counter(rows))]
    answers = []
    begin = 1
    for tag, plan in enumerate(plans):
        end = begin + plan.visible
        answers.append(Answer(Counter(r[begin:end] for r in rows if r[0] == tag)))
        begin = end
    return answers


def tagged(plans: Sequence[QueryPlan]) -> QueryPlan:
    """Return one query of all: a tag, then the columns of every one, NULL in those of others."""
    members = []
    every = [c.type for plan in plans for c in plan.relation.schema]
    begin = 0
    for tag, plan in enumerate(plans):
        node = plan.relation
        outputs = [("tag", Literal(tag, INTEGER))]
        outputs += [
            (
                f"x{i}",
                column(node, i - begin) if begin <= i < begin + node.width else Literal(None, t),
            )
            for i, t in enumerate(every)
        ]
        begin += node.width
        members.append(Project(node, tuple(outputs)))
    root = Union(tuple(members))
    return QueryPlan(root, root.width, ())
