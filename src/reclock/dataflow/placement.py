"""Decides where work runs: in the driver, or as a Spark job. One rule.

Rule. The driver would need about ``estimate`` seconds for some work. It does what takes at most
``DRIVER_SECONDS``; everything else is a Spark job, on every master. What ran as a job before is
one until the estimate is half of that, so that work near the limit stays where it is. Until Spark
is up the driver does what takes at most ``UNTIL_UP_SECONDS``; what takes longer waits for Spark.
A setting (``execution``) decides instead, if it says so.

Estimate. ``Σ rows(operator) × cost(operator)`` over the operators that the work reaches, where the
cost of an operator is what this process measured: seconds for each row that came in, an average
that follows the last ticks (``Costs``). Before anything was measured it is ``FIRST_COST``. Rows of
a tick are those of the changes that reach the operator: several tables cost what each costs. A row
of many bytes counts as several (``weight``), so the bytes that the driver works on are bounded.
Reading is an operator like others (``READ``): of records, and of their bytes as they are decoded.
Jobs measure nothing, and what was measured once, on a bad day, would be believed for ever: each job
has the costs of its operators believed a little less (``Costs.fade``).

Outlook. The same costs say beforehand how many changed rows make a tick a job, for EXPLAIN.

Tests: tests/dataflow/test_placement.py has the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Final

from reclock.dataflow.job.parts import Parts
from reclock.dataflow.job.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reclock.dataflow.graph import Graph
    from reclock.dataflow.work import Work
    from reclock.ids import ObjectId

DRIVER_SECONDS: Final = 0.1
UNTIL_UP_SECONDS: Final = 2.0

FIRST_COST: Final = 0.5e-6
"""Seconds a row: what joins and aggregates take on a laptop, about."""

ROW_BYTES: Final = 256
"""A row of more bytes counts as several of so many."""

LEAST_ROWS: Final = 256
"""Fewer rows than this say little of the cost of a row."""

_WEIGHT: Final = 0.25
"""How much of an average the last measurement is."""

_FADING: Final = 0.1
"""How much of what was measured goes with each job that measures nothing."""

ARRANGE: Final = "arrange"
"""The cost of arranging the updates of a tick, in addition to that of its operators."""

MERGE: Final = "merge"
"""The cost of merging; what it is called as a kind of work, too."""

CLOSE: Final = "close"
"""Looking at the updates of times that close, before a tick publishes them."""

READ: Final = "read"
"""Reading and decoding records; what it is called as a kind of work, too."""

_FIRST_COSTS: Final = {READ: 1.5e-6}
"""Of what takes longer than operators."""


class Execution(Enum):
    """What the setting says."""

    AUTO = "auto"
    DRIVER = "driver"
    SPARK = "spark"


class Place(Enum):
    """Where work runs."""

    DRIVER = "driver"
    SPARK = "spark"


class Costs:
    """What a row costs each operator in this process; any thread may note and ask."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._lock = Lock()

    def note(self, operator: str, rows: int, seconds: float) -> None:
        """Note that an operator took so long for so many rows."""
        if rows < LEAST_ROWS:
            return
        with self._lock:
            known = self._seconds.get(operator, first_cost(operator))
            self._seconds[operator] = known + _WEIGHT * (seconds / rows - known)

    def fade(self, operators: Iterable[str]) -> None:
        """Note that operators ran elsewhere: what is known of them gets older."""
        with self._lock:
            for operator in set(operators) & self._seconds.keys():
                first = first_cost(operator)
                self._seconds[operator] += _FADING * (first - self._seconds[operator])

    def of(self, loads: Iterable[tuple[str, int]]) -> float:
        """Return what so many rows cost each of these operators."""
        with self._lock:
            return sum(rows * self._seconds.get(name, first_cost(name)) for name, rows in loads)


def first_cost(operator: str) -> float:
    """Return what a row costs before anything was measured."""
    return _FIRST_COSTS.get(operator, FIRST_COST)


def weight(rows: int, size: int) -> int:
    """Return how many short rows cost as much as rows that have so many bytes together.

    >>> weight(60_000, 60_000 * 40), weight(60_000, 60_000 * 100_000)
    (60000, 23437500)
    """
    return max(rows, size // ROW_BYTES)


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
