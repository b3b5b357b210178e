"""Rows that lie where a key wants them are not exchanged: which stages that saves.

That nothing is lost by it is tested with random plans: test_job_tick.py.
"""

from __future__ import annotations

import pytest

from reclock.dataflow.job.parts import Parts
from reclock.dataflow.job.schedule import Schedule
from reclock.ids import ObjectId
from reclock.testing.evaluator import PythonEvaluator
from reclock.testing.graphs import MemoryGraph, planned

VIEW = ObjectId("u9")


def stages(text: str) -> int:
    graph = MemoryGraph({VIEW: planned(text)}, PythonEvaluator()).graph
    return len(Schedule.of_tick(graph, Parts(2), graph.tables.keys()).stages)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT b, a FROM t", 2),  # the table's key is not the view's
        ("SELECT a, count(*) FROM t GROUP BY a", 2),  # the view lies by its group
        ("SELECT count(*), a FROM t GROUP BY a", 2),
        ("SELECT a, n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) x WHERE n > 1", 2),
        ("SELECT t.a, count(*) FROM t JOIN u ON t.a = u.a GROUP BY t.a", 2),
        ("SELECT t.b, count(*) FROM t JOIN u ON t.a = u.a GROUP BY t.b", 3),
        ("SELECT DISTINCT a FROM t", 2),
    ],
)
def test_stages(text: str, count: int) -> None:
    assert stages(text) == count
