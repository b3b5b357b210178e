"""Engines whose tasks read: as Spark's would, one after the other, without Spark.

What is dealt out is staged share by share, every share twice, as after a failure: both times the
same must come of it. ``LoopEngine`` also runs ticks, first loads and catch-ups as jobs, by a
``LoopCluster``: what tasks have read is never in memory as a whole.

Tests run with it instead of other engines by ``--execution=loop`` (tests/support/forced.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engines.local_engine import LocalEngine
from engines.loop_cluster import LoopCluster
from engines.model_engine import ModelEngine
from model.evaluator import PythonEvaluator
from reclock.dataflow.piece import Piece
from reclock.spark.job import Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.store import Store
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.stage import Stager, Together
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Work
    from reclock.engine.engine import Updates
    from reclock.remap.batch import Range


class TaskModel(ModelEngine):
    """The model; tasks read what there are ``least`` records of."""

    least: ClassVar[int] = 2

    def reading_tasks(self, records: int, size: int = 0) -> int:
        """Return two: more than one has to agree with another."""
        del size
        return 2 if records >= self.least else 0

    def stage(
        self,
        stager: Stager | Together,
        shares: Sequence[Sequence[Range]],
        title: str,
        *,
        stop: Stop | None = None,
    ) -> list[Piece]:
        """Read every share twice."""
        del title
        pieces: list[Piece] = []
        for share in shares:
            if stop is not None:
                stop.check()
            pieces += _twice(stager, share)
        return pieces


def _twice(stager: Stager | Together, share: Sequence[Range]) -> list[Piece]:
    once, again = ([Piece.from_text(p.text()) for p in stager.staged(share)] for _ in range(2))
    if once != again:
        message = f"{share} were read as something else the second time"
        raise AssertionError(message)
    return once


class TaskEngine(TaskModel, LocalEngine):
    """The operators of ``dataflow``; tasks read."""


class LoopEngine(TaskEngine):
    """The same; all work is jobs, whose parts run one after the other; merges too."""

    least = 1
    by_jobs = True
    merges_in_tasks = True

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def run(self, work: Work) -> Mapping[ArrangementId, Updates]:
        """Compute as a job."""
        return Job(LoopCluster(PythonEvaluator(), twice=True), self._store).run(work)
