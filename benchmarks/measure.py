"""One line of a benchmark's table, and the clock that makes it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Measure:
    """A figure, what it must be, and whether it is."""

    name: str
    figure: str
    requirement: str = ""
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """Say whether the requirement holds; nothing for a figure that has none."""
        return {True: "met", False: "NOT MET", None: ""}[self.met]


def seconds(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_seconds(work: Callable[[], object], repeat: int) -> float:
    """Return the median duration of ``repeat`` runs."""
    return statistics.median(seconds(work) for _ in range(repeat))
