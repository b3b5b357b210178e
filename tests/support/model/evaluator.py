"""Scalars and groups evaluated in plain Python: the dataflow without Spark.

What ``spark.evaluator`` asks of Spark, answered by the reference evaluator, so
that graphs, ticks and whole databases can be tested by the thousand cases.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError, evaluate_scalar, normal
from reclock.dataflow.evaluate import Evaluated, GroupRequest, RowRequest
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import from_python, to_python
from reclock.ids import ObjectId
from reclock.sql.plan.relation import Get, Reduce, Window, with_inputs
from reclock.sql.plan.scalar import ColumnRef, walk
from reclock.sql.types import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.evaluate import Answer, Request
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type


class PythonEvaluator:
    """``Evaluator`` by the reference evaluator; ``waves`` counts the calls."""

    def __init__(self) -> None:
        self.waves = 0

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Return one answer per request."""
        self.waves += 1
        return [_group(r) if isinstance(r, GroupRequest) else _rows(r) for r in requests]


def _rows(request: RowRequest) -> Evaluated:
    kinds = _column_types(request.scalars)
    columns = [
        _values(column, kinds[i]) if i in kinds else [None] * len(column)
        for i, column in enumerate(request.rows.columns[:-2])
    ]
    rows = list(zip(*columns, strict=True)) if columns else [()] * request.rows.num_rows
    values, errors = [], []
    for scalar in request.scalars:
        found = [_value(scalar, _hashable(row)) for row in rows]
        values.append(from_python([v for v, _ in found], scalar.type))
        errors.append(pa.array([e for _, e in found], pa.string()))
    return Evaluated(tuple(values), tuple(errors))


def _values(column: pa.Array, kind: Type) -> list[Any]:
    """Return values as the evaluator has them: of json its text."""
    is_json = JSON in (kind, getattr(kind, "element", None))
    return column.to_pylist() if is_json else to_python(column, kind)


def _value(scalar: Scalar, row: tuple[object, ...]) -> tuple[object, str | None]:
    try:
        return evaluate_scalar(scalar, row), None
    except EvaluationError as error:
        return None, f"{error.code}|{error.message}"


def _group(request: GroupRequest) -> pa.RecordBatch:
    node = request.node
    source = node.inputs[0]
    leaf = Get(ObjectId("rows"), "rows", source.schema, None)
    plan = with_inputs(node, (leaf,))
    version = request.rows.column(0).to_numpy()
    kinds = [c.type for c in source.schema]
    given = [_values(c, k) for c, k in zip(request.rows.columns[1:-1], kinds, strict=True)]
    by_version: dict[int, Counter[tuple[object, ...]]] = {}
    for at, number in enumerate(version.tolist()):
        row = _hashable(tuple(column[at] for column in given))
        by_version.setdefault(number, Counter())[row] += 1
    tags: list[int] = []
    found: list[tuple[object, ...]] = []
    bad: list[str | None] = []
    for number, rows in by_version.items():
        try:
            made, error = list(evaluate(plan, {"rows": rows}).elements()), None
        except EvaluationError as cause:
            made, error = _without_value(node, rows), f"{cause.code}|{cause.message}"
        tags += [number] * len(made)
        found += made
        bad += [error] * len(made)
    types = arrow_types(node.schema)
    columns = [
        from_python([row[i] for row in found], c.type).cast(types[i])
        for i, c in enumerate(node.schema)
    ]
    names = ["version", *(f"c{i}" for i in range(len(columns))), "bad"]
    arrays = [pa.array(np.array(tags, np.int64)), *columns, pa.array(bad, pa.string())]
    return pa.RecordBatch.from_arrays(arrays, names)


def _without_value(
    node: Reduce | Window, rows: Counter[tuple[object, ...]]
) -> list[tuple[object, ...]]:
    """Return the rows that a node gives where an aggregate of them fails."""
    if isinstance(node, Window):
        return [(*row, *([None] * len(node.calls))) for row in rows.elements()]
    keys = {tuple(row[k] for k in node.keys) for row in rows}
    return [(*key, *([None] * len(node.aggregates))) for key in keys]


def _column_types(scalars: tuple[Scalar, ...]) -> dict[int, Type]:
    return {s.index: s.type for x in scalars for s in walk(x) if isinstance(s, ColumnRef)}


def _hashable(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(normal(tuple(v) if isinstance(v, list) else v) for v in row)
