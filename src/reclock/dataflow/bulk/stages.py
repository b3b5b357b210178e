"""The stages of a schedule, one after the other, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reclock.dataflow.bulk.parts import Parts
from reclock.dataflow.bulk.task import ANSWERS, EXCHANGED, FINISHED, ROWS, RunStage
from reclock.dataflow.graph import ArrangementId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.arrangement.run import RunRef
    from reclock.dataflow.bulk.exchange import Shelf
    from reclock.dataflow.bulk.schedule import Schedule
    from reclock.dataflow.bulk.workers import Made, Workers
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

PART_ROWS: Final = 1_000_000
"""How many rows a part has at most, of what is read: it must fit into a worker's memory."""


def parts_for(rows: int, parallelism: int) -> Parts:
    """Return how to divide so many rows: as many parts as run at once, or a multiple.

    >>> parts_for(2_100_000, 2), parts_for(10, 8)
    (Parts(count=4), Parts(count=8))
    """
    rounds = -(-rows // (parallelism * PART_ROWS))
    return Parts(parallelism * max(1, rounds))


@dataclass
class Stages:
    """A schedule at work; ``descriptions`` are those of the runs that stay."""

    workers: Workers
    schedule: Schedule
    shelf: Shelf
    descriptions: Mapping[ArrangementId, Description[Timestamp]]
    passing: Description[Timestamp]
    stem: str
    _finished: dict[ArrangementId, list[RunRef]] = field(default_factory=dict)
    _passing: set[str] = field(default_factory=set)

    def run(self, begin: Iterable[Made] = ()) -> dict[ArrangementId, tuple[RunRef, ...]]:
        """Run all stages, after what lies there to begin with; return the runs that stay."""
        try:
            self._take(begin)
            for number in range(len(self.schedule.stages)):
                self._stage(number)
                self.workers.load.reach((number + 1) * self.shelf.parts.count)
        finally:
            for segment in self._passing:
                self.shelf.store.remove(segment)
        return {name: tuple(refs) for name, refs in self._finished.items()}

    def _stage(self, number: int) -> None:
        """Have Spark answer what a stage asks, then run its parts."""
        stage = RunStage(
            self.schedule, number, self.shelf, self.descriptions, self.passing, self.stem,
            self.workers.evaluator,
        )  # fmt: skip
        plan = stage.plan
        if plan.asked or plan.grouped:
            self._take(self.workers.ask(stage))
        pending = [name for name in plan.finished if name in self.shelf.exchanged]
        if plan.steps or plan.exchanged or plan.kept_errors or pending:
            self._take(self.workers.run(stage))

    def _take(self, made: Iterable[Made]) -> None:
        """Put what was written where the next stage finds it."""
        shelf = self.shelf
        for kind, name, ref in made:
            if kind == FINISHED:
                self._finished.setdefault(ArrangementId(name), []).append(ref)
                continue
            if kind == EXCHANGED:
                shelf.exchanged.setdefault(ArrangementId(name), []).append(ref)
            elif kind == ROWS:
                shelf.rows.setdefault(int(name), []).append(ref)
            elif kind == ANSWERS:
                shelf.answers.setdefault(name, []).append(ref)
            if ref.segment is not None:
                self._passing.add(ref.segment)
