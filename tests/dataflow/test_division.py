"""What is not exchanged: rows that lie where a key wants them, and others before they are needed.

That nothing is lost by it is tested with random plans: test_job_tick.py.
"""

from __future__ import annotations

import pytest

from graphs.memory_graph import MemoryGraph, planned
from model.evaluator import PythonEvaluator
from reclock.dataflow.job.parts import Parts
from reclock.dataflow.job.schedule import Keyed, Schedule, keyed_inputs
from reclock.ids import ObjectId

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


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t.a FROM t JOIN (SELECT max(b) AS most FROM t) m ON t.b = m.most",
        "SELECT t.a FROM t JOIN (SELECT a, max(b) AS most FROM t GROUP BY a) m ON t.b = m.most",
        "SELECT t.a FROM t WHERE b NOT IN (SELECT max(b) FROM t GROUP BY a)",
    ],
)
def test_files_are_not_sent_before_they_are_needed(text: str) -> None:
    graph = MemoryGraph({VIEW: planned(text)}, PythonEvaluator()).graph
    schedule = Schedule.of_tick(graph, Parts(2), graph.tables.keys())
    late = 0
    for number, plan in enumerate(schedule.stages):
        for name, source in plan.exchanged.items():
            if source in schedule.given:
                users = {number + 1} if name in schedule.stages[number + 1].finished else set()
                users |= {
                    at for at, other in enumerate(schedule.stages)
                    for step in map(graph.steps.__getitem__, other.steps)
                    if isinstance(step, Keyed) and name in (n for _, n in keyed_inputs(step))
                }  # fmt: skip
                assert min(users) == number + 1
                late += number > 0
    assert late
