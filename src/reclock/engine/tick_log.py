"""The cost of the last ticks, phase by phase.

``TickLog`` keeps the last ``KEPT`` ticks in memory: it is empty after a restart. Measuring
costs a few microseconds per tick. A tick that failed is not in it: see ``reclock.errors``.

Tests: tests/system/test_system_loop.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from reclock.dataflow.work import Effort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.time.timestamp import Timestamp

Row = tuple[Any, ...]

PHASES: Final = ("gather", "compute", "write", "publish", "total")

KEPT: Final = 256
"""How many ticks are remembered."""


@dataclass(slots=True)
class Watch:
    """Measures the phases of one tick, one after the other."""

    begun: int = field(default_factory=perf_counter_ns)
    laps: list[tuple[int, int]] = field(default_factory=list)
    """When each phase ended, and how many rows it had."""
    held: int = 0
    """How many of the rows that were gathered are in the driver's memory."""
    effort: Effort = field(default_factory=Effort)
    """What Spark's tasks did, if they computed the updates."""

    @property
    def place(self) -> str:
        """Where the updates were computed."""
        return "spark" if self.effort.by_tasks else "driver"

    def driver_rows(self, phase: str, rows: int) -> int:
        """Return how many of the rows of a phase the driver had."""
        if self.place == "driver":
            return rows
        return self.held if phase == PHASES[0] else 0

    def lap(self, rows: int) -> None:
        """Note that the next phase has ended."""
        self.laps.append((perf_counter_ns(), rows))


class TickLog:
    """The last ticks; any thread may look while one adds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ticks: deque[tuple[Timestamp, Watch]] = deque(maxlen=KEPT)

    def add(self, timestamp: Timestamp, watch: Watch) -> None:
        """Remember the tick that closed ``timestamp``; its phases are all measured."""
        with self._lock:
            self._ticks.append((timestamp, watch))

    def rows(self) -> Iterator[Row]:
        """Yield one row per tick and phase, oldest first."""
        with self._lock:
            ticks = tuple(self._ticks)
        for timestamp, watch in ticks:
            effort = watch.effort
            before = watch.begun
            last, written = watch.laps[-1]
            laps = [*watch.laps, (last, written)]
            for phase, (ended, rows) in zip(PHASES, laps, strict=False):
                taken = ended - (watch.begun if phase == PHASES[-1] else before)
                yield (
                    int(timestamp), phase, taken / 1e6, rows, watch.place,
                    watch.driver_rows(phase, rows), effort.tasks, effort.bytes,
                )  # fmt: skip
                before = ended
