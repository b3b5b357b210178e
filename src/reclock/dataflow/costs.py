"""What a row costs each operator in this process, as measured: what places of work are chosen by.

Estimate. ``Σ rows(operator) × cost(operator)`` over the operators that the work reaches, where the
cost of an operator is what this process measured: seconds for each row that came in, an average
that follows the last ticks (``Costs``). Before anything was measured it is ``FIRST_COST``. Rows of
a tick are those of the changes that reach the operator: several tables cost what each costs. A row
of many bytes counts as several (``weight``), so the bytes that the driver works on are bounded.
Reading is an operator like others (``READ``): of records, and of their bytes as they are decoded.
Jobs measure nothing, and what was measured once, on a bad day, would be believed for ever: each job
has the costs of its operators believed a little less (``Costs.fade``).

Tests: tests/dataflow/test_placement.py.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

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
