from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.sinks.gather import Gatherer, Group, Limits
from reclock.time.frontier import CLOSED, at
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sinks.gather import Changes
    from reclock.time.frontier import Frontier


def delta(times: list[int]) -> pa.RecordBatch:
    count = len(times)
    columns = [
        pa.array(np.arange(count)),
        pa.array(times, pa.int64()),
        pa.array(np.ones(count, np.int64)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["c0", "time", "diff"])


def times_of(group: Group) -> list[int]:
    return [] if group.updates is None else group.updates.column("time").to_pylist()


class Reading:
    """Changes that note how they are asked for."""

    def __init__(self, batches: list[list[int]]) -> None:
        self.batches = batches
        self.read = 0

    def __call__(self, lower: Frontier, upper: Frontier) -> Iterator[pa.RecordBatch]:
        assert lower.strictly_precedes(upper)
        for times in self.batches:
            if any(lower.less_equal(Timestamp(time)) for time in times):
                kept = [time for time in times if not upper.less_equal(Timestamp(time))]
                self.read += 1
                yield delta(kept)


def groups_of(frontier: Frontier, upper: Frontier, changes: Changes, limits: Limits) -> list[Group]:
    gatherer = Gatherer()
    groups: list[Group] = []
    while not groups or groups[-1].end != upper:
        groups.append(gatherer.next(frontier, upper, changes, limits))
        frontier = groups[-1].end
    return groups


@st.composite
def batches(draw: st.DrawFn) -> list[list[int]]:
    """Draw times in batches: whole ones, ascending between batches, in any order inside."""
    times = sorted(draw(st.lists(st.integers(0, 30), max_size=40)))
    cuts = draw(st.sets(st.sampled_from(times), max_size=4)) if times else set()
    made: list[list[int]] = [[]]
    for time in times:
        if time in cuts and made[-1] and made[-1][-1] != time:
            made.append([])
        made[-1].append(time)
    return [draw(st.permutations(batch)) for batch in made]


@given(batches(), st.integers(0, 31), st.integers(1, 12), st.integers(1, 400))
def test_groups_are_whole_bounded_and_everything(
    given: list[list[int]], frontier: int, rows: int, size: int
) -> None:
    limits = Limits(rows, size)
    reading = Reading(given)
    groups = groups_of(at(frontier), at(31), reading, limits)
    assert reading.read <= len(given), "nothing is read twice"
    wanted = sorted(time for batch in given for time in batch if time >= frontier)
    assert [time for group in groups for time in times_of(group)] == wanted
    each = delta([0] * 8).nbytes / 8
    for group in groups:
        times = times_of(group)
        assert all(time < int(group.end.element()) for time in times)
        assert group.times == len(set(times))
        small = len(times) <= rows and len(times) * each <= size
        assert small or len(set(times)) == 1
    for group, after in pairwise(groups):
        assert times_of(group), "no group but the last is empty"
        assert set(times_of(group)).isdisjoint(times_of(after))
        # What follows would not have fitted.
        later = times_of(after)
        if later:
            more = len(times_of(group)) + later.count(later[0])
            assert more > rows or more * each > size or len(times_of(group)) >= rows


def test_what_is_read_ahead_meets_what_is_new() -> None:
    gatherer = Gatherer()
    reading = Reading([[1, 2, 3]])
    group = gatherer.next(at(0), at(5), reading, Limits(1))
    assert (times_of(group), group.end) == ([1], at(2))
    reading.batches.append([6])
    group = gatherer.next(at(2), at(9), reading, Limits(100))
    assert (times_of(group), group.end, reading.read) == ([2, 3, 6], at(9), 2)


def test_what_is_forgotten_is_read_again() -> None:
    gatherer = Gatherer()
    reading = Reading([[1, 2]])
    gatherer.next(at(0), at(5), reading, Limits(1))
    gatherer.forget()
    assert times_of(gatherer.next(at(0), at(5), reading, Limits(100))) == [1, 2]
    gatherer.next(at(0), at(5), reading, Limits(1))
    assert times_of(gatherer.next(at(0), at(2), reading, Limits(100))) == [1], "an upper before it"


def test_a_group_may_end_at_the_end_of_time() -> None:
    reading = Reading([[1], [INT64_MAX]])
    ends = [group.end for group in groups_of(at(0), CLOSED, reading, Limits(1))]
    assert ends == [at(2), CLOSED]


def test_a_closed_frontier_wants_nothing() -> None:
    assert Gatherer().next(CLOSED, CLOSED, Reading([[1]]), Limits()) == Group(None, CLOSED, 0)


@pytest.mark.parametrize("given", [[[2], [1]], [[1], [1]], [[1], [9]], [[9]]])
def test_changes_out_of_order_are_refused(given: list[list[int]]) -> None:
    with pytest.raises(InvalidValue):
        groups_of(at(0), at(9), lambda *_: map(delta, given), Limits(10))


def test_limits_allow_something() -> None:
    for rows, size in ((0, 1), (1, 0)):
        with pytest.raises(InvalidValue):
            Limits(rows, size)
