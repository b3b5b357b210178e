"""Answers to what the steps of a stage ask: asked on the spot, or written before as runs.

A question is about the rows of one step (all expressions of the stage over them at once) or
about the groups of one step. A worker in the driver's process asks for its part when it gets
there (``AskedNow``). A Spark task cannot: it finds answers that were asked before the stage,
for all parts at once (``ask``), in runs. The answer for a part has the part's first hash for
``kh``, so that the task of that part finds it by its range (``Answers``).

Versions of groups are numbered by each part from 0; across parts ``number`` makes them one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.layout import Layout
from reclock.dataflow.bulk.schedule import scalars_of
from reclock.dataflow.evaluate import Evaluated, RowRequest, answered, computed
from reclock.dataflow.steps.groups import Groups
from reclock.dataflow.types import arrow_type, arrow_types
from reclock.sql.plan.scalar import can_fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.bulk.exchange import Reader
    from reclock.dataflow.bulk.schedule import StagePlan
    from reclock.dataflow.evaluate import Answer, Evaluator, Request
    from reclock.dataflow.graph import Graph
    from reclock.sql.plan.scalar import Scalar

VERSION_BITS: Final = 40
"""A part has fewer versions of groups than 2 to this power."""


def about_rows(source: int) -> str:
    """Return the name of the question about the rows of a step."""
    return f"rows-{source}"


def about_groups(step: int) -> str:
    """Return the name of the question about the groups of a step."""
    return f"groups-{step}"


def asked_scalars(graph: Graph, plan: StagePlan, source: int) -> tuple[Scalar, ...]:
    """Return all that is computed over the rows of one step, each once."""
    steps = (graph.steps[at] for at in plan.asked[source])
    return computed(scalar for step in steps for scalar in scalars_of(step))


def row_layout(scalars: Sequence[Scalar]) -> Layout:
    """Return the columns of an answer about rows: each value, and its error if it can fail."""
    fields = []
    for i, scalar in enumerate(scalars):
        fields.append(pa.field(f"v{i}", arrow_type(scalar.type)))
        if can_fail(scalar):
            fields.append(pa.field(f"e{i}", pa.string()))
    return Layout((), tuple(fields))


def group_layout(step: Groups) -> Layout:
    """Return the columns of an answer about groups: version, the node's columns, the error."""
    kinds = [pa.int64(), *arrow_types(step.node.schema), pa.string()]
    return Layout((), tuple(pa.field(f"g{i}", kind) for i, kind in enumerate(kinds)))


class AskedNow:
    """The answers for one part of a stage, by an evaluator; of one source, all at once."""

    def __init__(self, graph: Graph, plan: StagePlan, evaluator: Evaluator) -> None:
        self._graph = graph
        self._plan = plan
        self._evaluator = evaluator
        self._about: dict[int, Evaluated] = {}

    def to(self, at: int, request: Request) -> Answer:
        """Return the answer to what step ``at`` asks."""
        del at
        if not isinstance(request, RowRequest):
            return self._evaluator.evaluate([request])[0]
        source = request.source
        scalars = asked_scalars(self._graph, self._plan, source)
        if source not in self._about:
            (found,) = self._evaluator.evaluate([RowRequest(source, request.rows, scalars)])
            assert isinstance(found, Evaluated)
            self._about[source] = found
        return answered(request, scalars, self._about[source])


class Answers:
    """The answers for one part of a stage, from runs."""

    def __init__(self, graph: Graph, plan: StagePlan, reader: Reader) -> None:
        self._graph = graph
        self._plan = plan
        self._reader = reader

    def to(self, at: int, request: Request) -> Answer:
        """Return the answer to what step ``at`` asks."""
        if isinstance(request, RowRequest):
            return self._about_rows(request)
        step = self._graph.steps[at]
        assert isinstance(step, Groups)
        layout = group_layout(step)
        found = self._reader.answer(about_groups(at), layout)
        return pa.RecordBatch.from_arrays(layout.rows(found), [f.name for f in layout.value])

    def _about_rows(self, request: RowRequest) -> Evaluated:
        scalars = asked_scalars(self._graph, self._plan, request.source)
        if not scalars:
            return answered(request, scalars, Evaluated((), ()))
        layout = row_layout(scalars)
        found = self._reader.answer(about_rows(request.source), layout)
        if found.num_rows != request.rows.num_rows:
            message = f"{found.num_rows} answers about {request.rows.num_rows} rows"
            raise AssertionError(message)
        column = iter(layout.rows(found))
        pairs = [(next(column), next(column) if can_fail(s) else None) for s in scalars]
        whole = Evaluated(tuple(v for v, _ in pairs), tuple(e for _, e in pairs))
        return answered(request, scalars, whole)
