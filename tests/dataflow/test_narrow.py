"""Joins gather only what is read of them: which columns the graph says that is."""

from __future__ import annotations

import pytest

from graphs.memory_graph import MemoryGraph, planned
from model.evaluator import PythonEvaluator
from reclock.dataflow.steps.stateful import Join
from reclock.ids import ObjectId

FIRST, SECOND = ObjectId("u8"), ObjectId("u9")


def needed(*texts: str) -> list[list[int] | None]:
    views = dict(zip((FIRST, SECOND), map(planned, texts), strict=False))
    graph = MemoryGraph(views, PythonEvaluator()).graph
    joins = [step for step in graph.steps if isinstance(step, Join)]
    found = [step.operator.needed for step in joins]
    return [None if columns is None else sorted(columns) for columns in found]


JOINED = "FROM t JOIN u ON t.a = u.a"


@pytest.mark.parametrize(
    ("texts", "columns"),
    [
        ((f"SELECT t.b {JOINED}",), [[1]]),
        ((f"SELECT t.b {JOINED} WHERE t.b > u.a + t.a",), [[0, 1, 3]]),
        ((f"SELECT count(*) AS n {JOINED}",), [[]]),
        ((f"SELECT * {JOINED}",), [None]),  # the view's own rows
        ((f"SELECT t.b {JOINED}", f"SELECT t.a AS x {JOINED}"), [[0, 1]]),  # one join, two views
        ((f"SELECT t.b {JOINED}", f"SELECT * {JOINED}"), [None]),
    ],
)
def test_what_is_read_of_a_join(texts: tuple[str, ...], columns: list[list[int] | None]) -> None:
    assert needed(*texts) == columns
