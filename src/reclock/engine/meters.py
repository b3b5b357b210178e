"""Counters of this process, for monitoring.

``Meters`` are plain numbers that only grow. Code notes what it has done, in about a microsecond
under a lock that is held no longer than that; a scrape copies the numbers. So neither a tick nor a
look-up ever waits for a scrape. All of it begins at nothing with the process.

``Histogram`` has the buckets of Prometheus: how many values were at most each bound.

Tests: tests/engine/test_meters.py; how they are named outside: docs/metrics.md.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.engine.tick_log import PHASES
from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.engine.tick_log import Watch
    from reclock.time.pace import Pace

SECONDS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
"""The bounds of the buckets: from a look-up to a load of minutes."""

_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Counted(NamedTuple):
    """A histogram at one moment: values in each bucket, those beyond, and the sum of all."""

    buckets: tuple[int, ...]
    total: float


class Histogram:
    """Counts values by their size; any thread may observe.

    >>> h = Histogram()
    >>> h.observe(0.0001); h.observe(0.3); h.observe(1e9)
    >>> now = h.now()
    >>> sum(now.buckets), now.buckets[0], now.buckets[-1]
    (3, 1, 1)
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._buckets = [0] * (len(SECONDS) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Note a value."""
        place = bisect_left(SECONDS, seconds)
        with self._lock:
            self._buckets[place] += 1
            self._total += seconds

    def now(self) -> Counted:
        """Return what was noted so far."""
        with self._lock:
            return Counted(tuple(self._buckets), self._total)


@dataclass
class Steps:
    """What the steps of one graph took, by where its ticks ran, since the graph is what it is.

    Seconds on Spark are of all tasks together.
    """

    graph: Graph
    ticks: Counter[str]
    seconds: dict[str, dict[int, float]]
    rows: dict[int, int] = field(default_factory=dict)
    """How many updates each step gave in the ticks that the driver computed."""


class Meters:
    """All that is counted of one database."""

    def __init__(self) -> None:
        self.phases: Final = {phase: Histogram() for phase in PHASES}
        """How long ticks take, by phase."""
        self._lock = Lock()
        self._ticks: Counter[tuple[Pace, str]] = Counter()
        self._rows: Counter[str] = Counter()
        self._changed: Counter[ArrangementId] = Counter()
        self._steps: dict[Pace, Steps] = {}
        self._merges: Counter[bool] = Counter()
        self._statements: dict[str, Histogram] = {}
        self._errors: Counter[str] = Counter()

    # Ticks.

    def ticked(
        self, pace: Pace, graph: Graph, watch: Watch, added: Mapping[ArrangementId, int]
    ) -> None:
        """Note a tick that was published, and how many updates each arrangement got."""
        before = watch.begun
        for phase, (ended, _) in zip(PHASES, watch.laps, strict=False):
            self.phases[phase].observe((ended - before) / 1e9)
            before = ended
        self.phases[PHASES[-1]].observe((before - watch.begun) / 1e9)
        with self._lock:
            self._ticks[pace, watch.place] += 1
            for phase, (_, rows) in zip(PHASES, watch.laps, strict=False):
                self._rows[phase] += rows
            for name, rows in added.items():
                self._changed[name] += rows
            known = self._steps.get(pace)
            if known is None or known.graph is not graph:
                known = self._steps[pace] = Steps(graph, Counter(), {})
            known.ticks[watch.place] += 1
            spent = known.seconds.setdefault(watch.place, {})
            for at, seconds in watch.effort.seconds.items():
                spent[at] = spent.get(at, 0.0) + seconds
            if watch.place == "driver":
                for at, count in watch.effort.rows.items():
                    known.rows[at] = known.rows.get(at, 0) + count

    def ticks(self) -> dict[tuple[Pace, str], int]:
        """Return how many ticks each pace had, by where they were computed."""
        with self._lock:
            return dict(self._ticks)

    def rows(self) -> dict[str, int]:
        """Return how many updates each phase has had."""
        with self._lock:
            return dict(self._rows)

    def changed(self) -> Counter[ArrangementId]:
        """Return how many updates each arrangement got."""
        with self._lock:
            return self._changed.copy()

    def steps(self, pace: Pace) -> Steps | None:
        """Return what the steps of a pace took."""
        with self._lock:
            known = self._steps.get(pace)
            if known is None:
                return None
            spent = {place: seconds.copy() for place, seconds in known.seconds.items()}
            return Steps(known.graph, known.ticks.copy(), spent, known.rows.copy())

    # Merges.

    def merged(self, *, ok: bool) -> None:
        """Note a call of merges that is over."""
        with self._lock:
            self._merges[ok] += 1

    def merges(self) -> tuple[int, int]:
        """Return how many calls of merges were done, and how many failed."""
        with self._lock:
            return self._merges[True], self._merges[False]

    # Statements.

    @contextmanager
    def statement(self, kind: str) -> Iterator[None]:
        """Note how long a statement takes, and the code of its error."""
        begun = perf_counter()
        try:
            yield
        except BaseException as error:
            code = error.code if isinstance(error, Error) else "XX000"
            with self._lock:
                self._errors[code] += 1
            raise
        finally:
            self.took(kind, perf_counter() - begun)

    def took(self, kind: str, seconds: float) -> None:
        """Note how long a statement took."""
        found = self._statements.get(kind)
        if found is None:
            with self._lock:
                found = self._statements.setdefault(kind, Histogram())
        found.observe(seconds)

    def statements(self) -> dict[str, Counted]:
        """Return how long statements took, by kind."""
        with self._lock:
            known = dict(self._statements)
        return {kind: histogram.now() for kind, histogram in known.items()}

    def errors(self) -> dict[str, int]:
        """Return how many statements failed, by SQLSTATE."""
        with self._lock:
            return dict(self._errors)


def kind_of(statement: object) -> str:
    """Return what a statement is called in a label.

    >>> class CreateMaterializedView: pass
    >>> class SelectStatement: pass
    >>> kind_of(CreateMaterializedView()), kind_of(SelectStatement())
    ('create_materialized_view', 'select')
    """
    name = type(statement).__name__.removesuffix("Statement")
    return _WORD.sub("_", name).lower()
