"""The screen: a panel on a terminal, plain lines elsewhere.

Tests: tests/demo/test_screen.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.live import Live
from rich.panel import Panel
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

_LINE_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Reading:
    """How things are at a moment."""

    engine: str
    """starting, running, dead or stopped."""
    kills: int
    transfers: int
    """How many there are."""
    out: int
    """How many of them have come out."""
    rate: float
    """How many come out a second."""
    frontier: int | None
    """Everything before it is out."""
    lag_ms: int | None
    timestamps: int
    """How many timestamps were looked at."""
    unbalanced: int
    """At how many of them the total was not 0."""
    duplicates: int


class Screen:
    """Shows readings, and what happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=8)
        self._last = 0.0

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Print what has happened."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def show(self, reading: Reading) -> None:
        """Show how things are now."""
        if self._console.is_terminal:
            self._live.update(panel(reading))
        elif time.monotonic() > self._last + _LINE_SECONDS:
            self._last = time.monotonic()
            self.say(line(reading))


def counted(number: int, noun: str) -> str:
    """Return how many there are of something.

    >>> counted(1, "kill"), counted(0, "kill"), counted(1_200, "kill")
    ('1 kill', '0 kills', '1,200 kills')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def panel(reading: Reading) -> Panel:
    """Return the panel of a reading."""
    table = Table.grid(padding=(0, 3))
    colour = {"dead": "red", "starting": "yellow"}.get(reading.engine, "green")
    frontier = "–" if reading.frontier is None else f"{reading.frontier}"
    lag = "–" if reading.lag_ms is None else f"{reading.lag_ms / 1_000:.1f} s"
    right = "red" if reading.unbalanced or reading.duplicates else "green"
    for name, value, other, what in (
        ("engine", f"[{colour}]{reading.engine}[/]", "killed", counted(reading.kills, "time")),
        ("transfers in", f"{reading.transfers:,}", "out, committed", f"{reading.out:,}"),
        ("rate out", f"{reading.rate:,.0f}/s", "duplicates", f"[{right}]{reading.duplicates}[/]"),
        ("frontier", frontier, "lag", lag),
        (
            "total of all balances",
            f"[{right}]{'0' if not reading.unbalanced else 'WRONG'}[/]",
            "at every one of",
            f"{reading.timestamps:,} timestamps",
        ),
    ):
        table.add_row(f"[dim]{name}[/]", value, f"[dim]{other}[/]", what)
    return Panel(table, title="reclock: a bank on Kafka, exactly once", expand=False)


def line(reading: Reading) -> str:
    """Return a reading in one line."""
    lag = "unknown" if reading.lag_ms is None else f"{reading.lag_ms / 1_000:.1f} s"
    total = "0" if not reading.unbalanced else f"wrong {counted(reading.unbalanced, 'time')}"
    return (
        f"engine {reading.engine}, killed {counted(reading.kills, 'time')}; "
        f"{reading.transfers} transfers in, {reading.out} out at {reading.rate:.0f}/s, "
        f"{reading.duplicates} duplicates; lag {lag}; "
        f"total {total} at {reading.timestamps} timestamps"
    )
