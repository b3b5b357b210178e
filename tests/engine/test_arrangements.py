"""Arrangements as a fold over a manifest: runs come, go, and are swapped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from memory_store import MemoryStore
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.store import LocalStore
from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.durable.manifest_store import ManifestStore
from reclock.engine.arrangements import Arrangements, Swap, Traces, beginning, following, write_runs
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

KEYING = Keying((pa.int64(),), (0,))
LAYOUTS = {"u1": KEYING.layout, "u2": KEYING.layout}


def batch(values, time):
    times = np.full(len(values), time)
    ones = np.ones(len(values), np.int64)
    return KEYING.arrange(deltas.build([pa.array(values, pa.int64())], times, ones))


class Kept:
    """A manifest in a store that agrees with the value in memory after every step."""

    def __init__(self, path):
        self.store = MemoryStore()
        self.segments = LocalStore(path)
        self.value = Arrangements.read(ManifestStore(self.store).open("x"))

    def change(self, *step):
        append, after = self.value.changed(*step)
        assert self.store.append([append]) is None
        stored = Arrangements.read(ManifestStore(self.store).load("x"))
        assert (stored.runs, stored.upper) == (after.runs, after.upper)
        self.value = after

    def tick(self, time, **values):
        updates = {name: batch(some, time) for name, some in values.items()}
        described = {a: following(self.value.runs[a], Timestamp(time + 1)) for a in updates}
        made = write_runs(self.segments, f"tick-{time}", updates, LAYOUTS, described)
        self.change(at(time + 1), made)

    def rows(self, name, time):
        traces = Traces(self.value, LAYOUTS, self.segments)
        found = traces[name].snapshot(Timestamp(time))
        return sorted(v for b in found for v in KEYING.columns(b)[0].to_pylist())


@pytest.fixture
def kept(tmp_path):
    made = Kept(tmp_path)
    start = dict.fromkeys(("u1", "u2"), beginning(Timestamp(5)))
    first = write_runs(made.segments, "start", {"u1": batch([1], 4)}, LAYOUTS, start)
    made.change(at(6), first)
    return made


def test_an_arrangement_begins_at_its_first_time(kept):
    assert kept.rows("u1", 4) == kept.rows("u1", 5) == [1]
    assert kept.rows("u2", 5) == []
    assert kept.value.since("u1") == at(4)


def test_runs_meet_although_some_ticks_wrote_none(kept):
    kept.tick(7, u1=[2])
    kept.tick(9)
    kept.tick(12, u1=[3], u2=[9])
    assert [kept.rows("u1", t) for t in (6, 7, 11, 12)] == [[1], [1, 2], [1, 2], [1, 2, 3]]
    assert [kept.rows("u2", t) for t in (11, 12)] == [[], [9]]
    ends = [ref.description.upper.element() for ref in kept.value.runs["u1"]]
    assert ends == [5, 8, 13]


def test_small_runs_travel_in_the_manifest_and_large_ones_share_a_file(kept):
    kept.tick(7, u1=[2], u2=[3])
    assert kept.segments.names() == []
    kept.tick(8, u1=list(range(9_000)), u2=list(range(9_000)))
    assert len(kept.segments.names()) == 1
    assert set(kept.value.segments()) == set(kept.segments.names())


@pytest.mark.parametrize("size", [3, 5_000])
def test_the_very_same_updates_are_written_once(kept, size):
    shared = consolidate(KEYING.layout, batch(list(range(size)), 7))
    kept.tick(6, u1=[6])
    described = {a: following(kept.value.runs[a], Timestamp(8)) for a in ("u1", "u2")}
    assert described["u1"] != described["u2"]
    made = write_runs(kept.segments, "tick-7", {"u1": shared, "u2": shared}, LAYOUTS, described)
    (one,), (other,) = made["u1"], made["u2"]
    assert (one.segment, one.offset, one.inline) == (other.segment, other.offset, other.inline)
    assert (one.name, other.name) == ("u1", "u2")
    assert other.description == described["u2"]
    kept.change(at(8), made)
    assert kept.rows("u2", 7) == list(range(size))
    assert kept.rows("u1", 7) == sorted({1, 6, *range(size)})


def test_runs_that_are_written_already_are_taken_as_they_are(kept):
    """What a large tick gives: several runs of one interval, siblings."""
    description = following(kept.value.runs["u1"], Timestamp(8))
    parts = []
    for part in range(2):
        updates = {"u1": batch(range(part * 5_000, part * 5_000 + 5_000), 7)}
        made = write_runs(kept.segments, f"task-{part}", updates, LAYOUTS, {"u1": description})
        parts += made["u1"]
    described = {"u1": description}
    made = write_runs(kept.segments, "tick-7", {"u1": tuple(parts)}, LAYOUTS, described)
    kept.change(at(8), made)
    assert len(kept.value.runs["u1"]) == 3
    assert len(kept.rows("u1", 7)) == 10_001
    kept.tick(9, u1=[-1])
    assert kept.rows("u1", 9)[0] == -1


def test_a_swap_replaces_runs_once(kept):
    for time in (7, 8):
        kept.tick(time, u1=[time])
    old = kept.value.runs["u1"]
    whole = write_runs(
        kept.segments,
        "merge",
        {"u1": batch([1, 7, 8], 8)},
        LAYOUTS,
        {"u1": beginning(Timestamp(9))},
    )["u1"][0]
    swap = Swap("u1", old, (whole,))
    kept.change(at(10), {}, frozenset(), (swap,))
    assert kept.value.runs["u1"] == (whole,)
    kept.change(at(11), {}, frozenset(), (swap,))
    assert kept.value.runs["u1"] == (whole,), "its runs are gone: nothing to swap"
    assert kept.rows("u1", 10) == [1, 7, 8]


def test_what_is_removed_leaves_no_record(kept):
    kept.change(at(7), {}, frozenset({"u1"}))
    assert list(kept.value.runs) == ["u2"]
    assert len(kept.value.manifest.runs()) == 1


def test_arrangements_come_and_go_at_no_time(kept):
    """The manifest is ahead of the upper then, until a tick is ahead of it."""
    for number in range(3):
        begun = {f"v{number}": beginning(Timestamp(6))}
        layouts = {f"v{number}": KEYING.layout}
        made = write_runs(kept.segments, f"join-{number}", {}, layouts, begun)
        kept.change(at(6), made, frozenset({f"v{number - 1}"} & kept.value.runs.keys()))
        assert kept.value.upper == at(6)
    assert kept.value.runs.keys() == {"u1", "u2", "v2"}
    assert kept.value.manifest.upper == at(9)
    kept.tick(6, u1=[2])
    assert (kept.value.upper, kept.value.behind) == (at(7), 7)
    kept.tick(7)
    assert (kept.value.upper, kept.value.behind) == (at(8), 8)
    kept.tick(20, u1=[3])
    assert (kept.value.upper, kept.value.behind) == (at(21), None)
    assert kept.value.manifest.upper == at(21)
    assert [kept.rows("u1", t) for t in (5, 6, 20)] == [[1], [1, 2], [1, 2, 3]]
