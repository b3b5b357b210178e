"""One line of a benchmark's table, and the clocks that make it."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TICKS = os.sysconf("SC_CLK_TCK")


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


def cpu_seconds() -> float:
    """Return the processor time of this process and of all it started, a JVM too."""
    found: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has ended
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in found.items() if parent in ours} - ours:
        ours |= more
    return sum(found[pid][1] for pid in ours)
