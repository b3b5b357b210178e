"""Crash as an input: every failpoint of a tick × every tick, then replay.

P2: after any crash the same offsets have the same times, or greater ones through
compaction only; nothing is lost, nothing appears twice, and a reader that starts late
agrees with the early one at every time that both can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.clock import ManualClock
from reclock.durable.memory import MemoryStore
from reclock.durable.sqlite import SqliteStore
from reclock.failpoints import NAMES, FailpointRaised, armed
from reclock.testing.ingest import Row, ScriptedIngest
from reclock.testing.scripted import ABORT, EOF, PAUSE, Event, NewPartition, Record, ScriptAborted
from reclock.testing.scripted import ScriptedSource as Source
from reclock.testing.strategies.remaps import PARTITIONS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reclock.durable.store import Store

SCRIPT: tuple[Event, ...] = (
    Record(0, "a"), Record(1, "b"), PAUSE(),
    Record(0, "c"), Record(0, "c"), PAUSE(),
    PAUSE(),
    NewPartition(5), PAUSE(),
    Record(5, "d"), Record(1, "e"), PAUSE(),
    Record(5, "f"), EOF(),
)  # fmt: skip
TICKS = 7


def expected(source: Source) -> set[Row]:
    return {Row(p, o, data) for p, rows in source.log.items() for o, data in enumerate(rows)}


class Story:
    """One source and its durable state through the lives of many engines."""

    def __init__(self, store: Callable[[], Store], source: Source, window: int) -> None:
        self.open_store = store
        self.source = source
        self.window = window
        self.clock = ManualClock(500)
        self.times: dict[Row, Timestamp] = {}
        self.start()

    def start(self) -> None:
        self.store = self.open_store()
        self.engine = ScriptedIngest(
            self.store, self.source, self.clock, interval=1_000, window=self.window
        )

    def crash_and_restart(self) -> None:
        self.store.close()
        self.start()
        self.check()

    def tick(self) -> None:
        self.clock.advance(1_000)
        self.engine.tick()
        self.check()

    def check(self) -> None:
        """Compare the published times with all that were ever seen."""
        since = self.store.snapshot(self.engine._output).since.element()
        for row, time in self.engine.times().items():
            before = self.times.setdefault(row, time)
            assert time == max(before, since), f"{row} moved from {before} to {time}"
        assert self.times.keys() == self.engine.times().keys(), "a published row was lost"


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    if request.param == "memory":
        disk = MemoryStore()
        return disk.reopen
    return lambda: SqliteStore.open_directory(tmp_path)


@pytest.mark.parametrize("window", [1, 2_000, 3_600_000])
@pytest.mark.parametrize("at", range(TICKS))
@pytest.mark.parametrize("name", sorted(n for n in NAMES if n.split(".")[0] in ("remap", "ingest", "durable")))
def test_every_failpoint_at_every_tick(
    open_store: Callable[[], Store], name: str, at: int, window: int
) -> None:
    source = Source(SCRIPT)
    story = Story(open_store, source, window)
    for tick in range(TICKS):
        if tick == at:
            try:
                with armed({name: "raise"}):
                    story.tick()
            except FailpointRaised:
                story.crash_and_restart()
        story.tick()
    while not story.engine.upper.is_closed:
        story.tick()
    assert set(story.engine.times()) == expected(source)
    story.store.close()
