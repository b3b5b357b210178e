"""Crash as an input: every failpoint of a tick × every tick, then replay.

P2: after any crash the same offsets have the same times, or greater ones through
compaction only; nothing is lost, nothing appears twice, and a reader that starts late
agrees with the early one at every time that both can read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_store import MemoryDisk, MemoryStore
from reclock.clock import ManualClock
from reclock.durable.sqlite import open_sqlite
from reclock.errors import Unreadable
from reclock.failpoints import NAMES, FailpointRaised, armed
from reclock.ids import CollectionId
from reclock.testing.ingest import Row, ScriptedIngest
from reclock.testing.scripted import ABORT, EOF, PAUSE, Event, NewPartition, Record, ScriptAborted
from reclock.testing.scripted import ScriptedSource as Source
from reclock.time.timestamp import Timestamp
from strategies.remaps import PARTITIONS

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
TICKS = 6


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


STEPS = sorted(name for name in NAMES if name.startswith(("remap.", "ingest.publish.", "durable.")))


@pytest.mark.parametrize(
    ("kind", "window"), [("memory", 1), ("memory", 2_000), ("memory", 3_600_000), ("sqlite", 2_000)]
)
@pytest.mark.parametrize("at", range(TICKS))
@pytest.mark.parametrize("name", STEPS)
def test_every_failpoint_at_every_tick(
    tmp_path: Path, kind: str, name: str, at: int, window: int
) -> None:
    disk = MemoryDisk()
    source = Source(SCRIPT)
    opener = {"memory": lambda: MemoryStore(disk), "sqlite": lambda: open_sqlite(tmp_path)}[kind]
    story = Story(opener, source, window)
    crashes = 0
    for tick in range(TICKS):
        if tick == at:
            try:
                with armed({name: "raise"}):
                    story.tick()
            except FailpointRaised:
                crashes += 1
                story.crash_and_restart()
        story.tick()
    while not story.engine.upper.is_closed:
        story.tick()
    assert set(story.engine.times()) == expected(source)
    assert crashes == 1 or "compact" in name, "the failpoint was not reached"
    story.store.close()


def test_every_failpoint_of_compaction_is_reached() -> None:
    """The table above excuses compaction where no window has passed yet; here it has."""
    for name in (name for name in STEPS if "compact" in name):
        disk = MemoryDisk()
        story = Story(lambda disk=disk: MemoryStore(disk), Source(SCRIPT), window=1)  # type: ignore[misc]
        story.tick()
        story.tick()
        with pytest.raises(FailpointRaised), armed({name: "raise"}):
            story.tick()
        story.crash_and_restart()


EVENTS = st.one_of(
    st.builds(Record, PARTITIONS, st.sampled_from("ab")),
    st.builds(NewPartition, PARTITIONS),
    st.just(PAUSE()),
    st.just(ABORT()),
)


@settings(max_examples=200)
@given(
    script=st.lists(EVENTS, max_size=25),
    ends=st.booleans(),
    jumps=st.lists(st.integers(-3_600_000, 5_000), min_size=1, max_size=12),
    crashes=st.dictionaries(st.integers(0, 11), st.sampled_from(STEPS), max_size=4),
    window=st.sampled_from([1, 3_000, 10_000_000]),
)
def test_random_scripts_crashes_and_clocks(
    script: list[Event], ends: bool, jumps: list[int], crashes: dict[int, str], window: int
) -> None:
    disk = MemoryDisk()
    source = Source([*script, *([EOF()] if ends else [])])
    story = Story(lambda: MemoryStore(disk), source, window)
    for i, jump in enumerate(jumps):
        story.clock.set(max(0, story.clock.now_ms() + jump))
        try:
            with armed({crashes[i]: "raise"} if i in crashes else {}):
                story.tick()
        except (FailpointRaised, ScriptAborted):
            story.crash_and_restart()
    story.clock.set(10_000_000)
    while not source.exhausted:
        try:
            story.tick()
        except ScriptAborted:
            story.crash_and_restart()
    story.tick()
    assert set(story.engine.times()) == expected(source)


@settings(max_examples=100)
@given(st.lists(EVENTS.filter(lambda e: e != ABORT()), max_size=25), st.integers(1, 6))
def test_a_late_reader_agrees_with_the_early_one_at_every_time(
    script: list[Event], late: int
) -> None:
    """P1: an output created later, from the same remap, is the same at every time."""
    disk = MemoryDisk()
    source = Source(script)
    clock = ManualClock(0)
    early = ScriptedIngest(MemoryStore(disk), source, clock, window=10_000_000)
    for _ in range(late):
        clock.advance(1_000)
        early.tick()
    disk.states = {k: v for k, v in disk.states.items() if not k.startswith("output/")}
    kept = {k: v for k, v in disk.sums.items() if k.startswith("output/")}
    published = {Row(*json.loads(data)): t for (t, data) in next(iter(kept.values()), {})}
    disk.sums = {k: v for k, v in disk.sums.items() if not k.startswith("output/")}
    second = ScriptedIngest(MemoryStore(disk), source, clock, window=10_000_000)
    second.catch_up(second.remap)
    assert second.times() == published
    for t in range(0, clock.now_ms() + 1, 500):
        at = {row for row, time in published.items() if time <= t}
        assert set(second.rows_at(Timestamp(t))) == at


@settings(max_examples=100)
@given(
    st.lists(EVENTS.filter(lambda e: e != ABORT()), max_size=25),
    st.integers(3, 9),
    st.sampled_from([1, 1_500, 4_000]),
    st.booleans(),
)
def test_a_reader_after_compaction_agrees_where_it_can_be_read_and_is_refused_elsewhere(
    script: list[Event], late: int, window: int, crash: bool
) -> None:
    """P1: who begins behind a compaction never shows less than the others, but an error."""
    disk = MemoryDisk()
    source = Source(script)
    clock = ManualClock(0)
    early = ScriptedIngest(MemoryStore(disk), source, clock, window=window)
    for _ in range(late):
        clock.advance(1_000)
        early.tick()
    readable = range(early.remap.since, clock.now_ms() + 1, 500)
    published = {t: early.rows_at(Timestamp(t)) for t in readable}
    output = next(c for c in disk.states if c.startswith("output/"))
    del disk.states[output], disk.sums[output]
    second = ScriptedIngest(MemoryStore(disk), source, clock, window=10_000_000)
    try:
        with armed({"durable.compact.before": "raise"} if crash else {}):
            second.catch_up(second.remap)
    except FailpointRaised:
        second = ScriptedIngest(MemoryStore(disk), source, clock, window=10_000_000)
    assert {t: second.rows_at(Timestamp(t)) for t in published} == published
    if second.remap.since > 0:
        with pytest.raises(Unreadable):
            second.rows_at(second.remap.since.back())


def test_engines_that_race_publish_every_row_once() -> None:
    """P1, P2: two engines on one store, each with a clock and a moment of its own."""
    disk = MemoryDisk()
    store = MemoryStore(disk)
    source = Source([event for n in range(9) for event in (Record(n % 2, f"{n}"), PAUSE())])
    clocks = [ManualClock(0), ManualClock(0)]
    first, second = (ScriptedIngest(store, source, clock, window=2_000) for clock in clocks)

    def overtake() -> None:
        with armed({"ingest.publish.before": lambda: None}):
            clocks[0].advance(5_000)
            first.tick()

    seen: dict[Row, Timestamp] = {}
    for step in (1_000, 6_000, 0, 7_000, 0, 9_000):
        clocks[1].advance(step)
        with armed({"ingest.publish.before": overtake}):
            second.tick()
        since = store.state(first._output).since.element()
        for row, time in second.times().items():
            assert time == max(seen.setdefault(row, time), since)
    clocks[0].set(10**6)
    while not source.exhausted:
        first.tick()
        clocks[0].advance(1_000)
    first.tick()
    assert set(first.times()) == expected(source)
    assert set(first.rows_at(first.upper.element().back()).values()) == {1}


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_what_is_stored_stays_bounded_while_time_passes(busy: bool) -> None:
    """P5: durable bindings depend on the window, not on how long it runs or how often it dies."""
    disk = MemoryDisk()
    source = Source([])
    story = Story(lambda: MemoryStore(disk), source, window=5_000)
    sizes = []
    for n in range(300):
        source.extend([Record(n % 3, "x")] if busy else [])
        story.tick()
        sizes.append((len(story.engine.remap.bindings), len(disk.sums[CollectionId("remap/u1")])))
        if n % 50 == 49:
            story.crash_and_restart()
            assert (len(story.engine.remap.bindings), sizes[-1][1]) == sizes[-1]
    assert max(sizes[20:]) <= (7, 30)
    assert not busy or min(sizes[20:])[0] == 6, "times inside the window must stay apart"
    assert max(sizes[20:60]) == max(sizes[-40:])


def test_the_window_may_change_between_lives() -> None:
    disk = MemoryDisk()
    source = Source([event for n in range(20) for event in (Record(0, f"{n}"), PAUSE())])
    story = Story(lambda: MemoryStore(disk), source, window=4_000)
    for window in (4_000, 10_000, 1_000):
        story.window = window
        story.crash_and_restart()
        for _ in range(5):
            story.tick()
    assert story.engine.remap.since == story.clock.now_ms() + 500 - 1_000


def test_a_longer_reread_after_a_crash_keeps_old_offsets_at_their_old_times() -> None:
    disk = MemoryDisk()
    source = Source([Record(0, "a"), PAUSE(), Record(0, "b"), Record(0, "c"), PAUSE()])
    story = Story(lambda: MemoryStore(disk), source, window=10_000)
    with pytest.raises(FailpointRaised), armed({"remap.append.after": "raise"}):
        story.tick()
    story.crash_and_restart()
    story.tick()
    assert [t for _, t in sorted(story.engine.times().items())] == [2_000, 3_000, 3_000]


def test_the_clock_going_back_an_hour_changes_nothing_that_is_bound() -> None:
    disk = MemoryDisk()
    source = Source([Record(0, "a"), PAUSE(), Record(0, "b"), PAUSE(), Record(0, "c")])
    story = Story(lambda: MemoryStore(disk), source, window=10_000_000)
    story.clock.set(7_200_000)
    story.tick()
    story.clock.set(3_600_000)
    story.tick()
    assert [r.data for r in story.engine.times()] == ["a"]
    story.clock.set(7_300_000)
    story.tick()
    assert {r.data: t for r, t in story.engine.times().items()} == {
        "a": 7_201_000, "b": 7_301_000, "c": 7_301_000,
    }  # fmt: skip
