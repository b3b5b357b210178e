"""Decides where work runs: in the driver, or as a Spark job. One rule.

Rule. The driver would need about ``estimate`` seconds for some work. It does what takes at most
``DRIVER_SECONDS``; everything else is a Spark job, on every master. What ran as a job before is
one until the estimate is half of that, so that work near the limit stays where it is. Until Spark
is up the driver does what takes at most ``UNTIL_UP_SECONDS``; what takes longer waits for Spark.
A setting (``execution``) decides instead, if it says so.

Estimate. What the operators that the work reaches cost (``costs``): rows of a tick are those of the
changes that reach the operator, so several tables cost what each costs.

Outlook. The same costs say beforehand how many changed rows make a tick a job, for EXPLAIN.

Tests: tests/dataflow/test_placement.py has the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from reclock.dataflow.costs import ARRANGE, Costs, weight
from reclock.dataflow.job.parts import Parts
from reclock.dataflow.job.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reclock.dataflow.graph import Graph
    from reclock.dataflow.work import Work
    from reclock.ids import ObjectId

DRIVER_SECONDS: Final = 0.1
UNTIL_UP_SECONDS: Final = 2.0


class Execution(Enum):
    """What the setting says."""

    AUTO = "auto"
    DRIVER = "driver"
    SPARK = "spark"


class Place(Enum):
    """Where work runs."""

    DRIVER = "driver"
    SPARK = "spark"


def place(
    seconds: float,
    *,
    execution: Execution = Execution.AUTO,
    before: Place = Place.DRIVER,
    is_up: bool = True,
) -> Place:
    """Return where work runs that takes the driver so many seconds.

    >>> place(0.05), place(0.2), place(0.2, is_up=False), place(0.07, before=Place.SPARK)
    (<Place.DRIVER: 'driver'>, <Place.SPARK: 'spark'>, <Place.DRIVER: 'driver'>, <Place.SPARK: 'spark'>)
    """  # noqa: E501 - what it prints
    if execution is not Execution.AUTO:
        return Place(execution.value)
    if not is_up:
        return Place.DRIVER if seconds <= UNTIL_UP_SECONDS else Place.SPARK
    limit = DRIVER_SECONDS if before is Place.DRIVER else DRIVER_SECONDS / 2
    return Place.DRIVER if seconds <= limit else Place.SPARK


def loads_of(work: Work) -> list[tuple[str, int]]:
    """Return the operators that work reaches, by name, and what comes to each, at most, in rows."""
    graph = work.graph
    if work.wanted is None:
        changes = work.changes.items()
        return reached_by(graph, {item: weight(some.rows, some.bytes) for item, some in changes})
    steps = graph.needed(work.wanted, work.given.steps) - work.given.steps.keys()
    rows = weight(work.rows, work.bytes)
    return _named(graph, dict.fromkeys(steps, rows), rows)


def reached_by(graph: Graph, changed: Mapping[ObjectId, int]) -> list[tuple[str, int]]:
    """Return the operators that so many changes of tables and sources reach, with those of each."""
    rows: dict[int, int] = {}
    for item, count in changed.items():
        at = graph.entry(item)[0]
        rows[at] = rows.get(at, 0) + count
    for at, step in enumerate(graph.steps):
        live = rows.keys() & set(step.inputs)
        if live:
            rows[at] = rows.get(at, 0) + sum(rows[source] for source in live)
    return _named(graph, rows, sum(changed.values()))


def _named(graph: Graph, rows: Mapping[int, int], whole: int) -> list[tuple[str, int]]:
    steps = [(type(graph.steps[at]).__name__, rows[at]) for at in sorted(rows)]
    return [(ARRANGE, whole), *steps]


@dataclass(frozen=True)
class Outlook:
    """Where ticks would run: those of more than ``rows`` changed rows as jobs of so many stages.

    ``execution`` may say otherwise.
    """

    execution: Execution
    rows: int
    stages: int

    def __str__(self) -> str:
        """Return it in words.

        >>> print(Outlook(Execution.AUTO, 34_000, 3))
        of more than about 34,000 changed rows a Spark job of 3 stages, of fewer in the driver
        >>> print(Outlook(Execution.SPARK, 34_000, 1))
        a Spark job of 1 stage, by execution = spark
        """
        job = f"a Spark job of {self.stages} stage{'s' if self.stages > 1 else ''}"
        match self.execution:
            case Execution.AUTO:
                many = f"more than about {self.rows:,} changed rows"
                return f"of {many} {job}, of fewer in the driver"
            case Execution.DRIVER:
                return "in the driver, by execution = driver"
            case Execution.SPARK:
                return f"{job}, by execution = spark"


@dataclass
class Placement:
    """The rule at work: it remembers where each kind of work ran last."""

    costs: Costs = field(default_factory=Costs)
    execution: Execution = Execution.AUTO
    _before: dict[str, Place] = field(default_factory=dict)

    def estimate(self, work: Work) -> float:
        """Return how many seconds the driver would need, about."""
        return self.costs.of(loads_of(work))

    def fade(self, work: Work) -> None:
        """Note that work ran as a job."""
        self.costs.fade(name for name, _ in loads_of(work))

    def outlook(self, graph: Graph, changed: Collection[ObjectId]) -> Outlook:
        """Return where ticks would run in which all of these change."""
        each = self.costs.of(reached_by(graph, dict.fromkeys(changed, 1)))
        rows = DRIVER_SECONDS * max(1, len(changed)) / each
        stages = Schedule.of_tick(graph, Parts(1), changed).spark_stages
        return Outlook(self.execution, int(float(f"{rows:.2g}")), stages)

    def choose(self, work: Work, kind: str, *, is_up: bool) -> Place:
        """Return where work of a kind runs now."""
        return self.choose_for(self.estimate(work), kind, is_up=is_up)

    def choose_for(self, seconds: float, kind: str, *, is_up: bool) -> Place:
        """Return where work of a kind runs now that takes the driver so many seconds."""
        before = self._before.get(kind, Place.DRIVER)
        chosen = place(seconds, execution=self.execution, before=before, is_up=is_up)
        self._before[kind] = chosen
        return chosen
