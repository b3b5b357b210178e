"""Bring-your-own bindings are a remap, or an error that names the offending pair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import BindingsNotMonotone, InvalidValue
from reclock.remap.follow import time_of
from reclock.remap.supplied import SuppliedBinding, check_supplied, steps_of
from reclock.remap.trace import Remap
from reclock.time.position import KafkaPosition, offsets_of
from reclock.time.timestamp import Timestamp
from strategies.remaps import PARTITIONS

B = SuppliedBinding
ROWS = st.lists(st.builds(B, st.integers(1, 9), PARTITIONS, st.integers(0, 9)), max_size=8)
UNBOUND = Remap.unbound(KafkaPosition.frontier({}))


def extended(remap: Remap[KafkaPosition], rows: list[B], upper: int) -> Remap[KafkaPosition]:
    """Return what rows make of a remap when times before ``upper`` are complete."""
    for step in steps_of(remap, check_supplied(remap, rows), 100):
        if step.time < upper:
            remap = remap.bound(step.time, step.frontier)
    return remap.bound(Timestamp(upper - 1), remap.latest)


def contradict(rows: list[B]) -> bool:
    def both(a: B, b: B) -> bool:
        same = a.partition == b.partition
        early = a.timestamp <= b.timestamp
        back = a.offset > b.offset or (a.timestamp == b.timestamp and a.offset != b.offset)
        return same and early and back

    return any(both(a, b) for a in rows for b in rows)


@given(ROWS)
def test_rows_are_accepted_exactly_when_no_partition_goes_back(rows: list[B]) -> None:
    if contradict(rows):
        with pytest.raises(BindingsNotMonotone):
            check_supplied(UNBOUND, rows)
        return
    remap = extended(UNBOUND, rows, 10)
    for partition in (0, 1, 2, 7, 40, 41):
        for offset in range(10):
            times = [r.timestamp for r in rows if r.partition == partition and r.offset > offset]
            expected = min(times, default=None)
            assert time_of(remap, KafkaPosition.exact(partition, offset)) == expected


@given(ROWS, st.integers(2, 9), st.integers(0, 9))
def test_rows_may_come_in_any_two_parts(rows: list[B], upper: int, since: int) -> None:
    """What is bound, compacted or not, and the rest: the same as all at once."""
    if contradict(rows):
        return
    whole = extended(UNBOUND, rows, 10)
    part = extended(UNBOUND, [r for r in rows if r.timestamp < upper], upper)
    part = part.compacted(Timestamp(min(since, upper - 1)))
    for later in (rows, [r for r in rows if r.timestamp >= upper]):
        made = extended(part, later, 10)
        for time in range(part.since, 10):
            found, wanted = (offsets_of(r.at(Timestamp(time))) for r in (made, whole))
            assert {p: o for p, o in found.items() if o} == {p: o for p, o in wanted.items() if o}


@given(ROWS, st.builds(B, st.integers(1, 9), PARTITIONS, st.integers(0, 9)))
def test_a_row_about_a_complete_time_says_what_is_bound_or_is_refused(
    rows: list[B], late: B
) -> None:
    if contradict(rows):
        return
    remap = extended(UNBOUND, rows, 10)
    bound = offsets_of(remap.at(Timestamp(late.timestamp))).get(late.partition, 0)
    if bound == late.offset:
        assert check_supplied(remap, [late]) == []
        return
    with pytest.raises(BindingsNotMonotone) as caught:
        check_supplied(remap, [late])
    assert str(late) in caught.value.message
    assert f"partition {late.partition}, offset {bound})" in caught.value.detail


def test_two_offsets_of_a_partition_at_one_time_contradict() -> None:
    with pytest.raises(BindingsNotMonotone) as caught:
        check_supplied(UNBOUND, [B(5, 1, 4), B(5, 1, 3)])
    assert caught.value.detail == (
        "(timestamp 5, partition 1, offset 3) is followed by (timestamp 5, partition 1, offset 4)"
    )
    assert caught.value.hint == "a partition has one offset at a timestamp"


def test_a_row_that_goes_back_behind_what_is_bound_is_named_with_it() -> None:
    remap = extended(UNBOUND, [B(5, 1, 4), B(7, 0, 1)], 9)
    with pytest.raises(BindingsNotMonotone) as caught:
        check_supplied(remap, [B(12, 1, 3)])
    assert caught.value.detail == (
        "(timestamp 5, partition 1, offset 4) is followed by (timestamp 12, partition 1, offset 3)"
    )


@pytest.mark.parametrize(
    "row", [B(-1, 0, 0), B(0, 0, 0), B(1, -1, 0), B(1, 0, -1), B(1, 0, 2**63), B(2**63 - 1, 0, 1)]
)
def test_numbers_that_are_no_binding_are_refused(row: B) -> None:
    with pytest.raises(InvalidValue, match="invalid binding"):
        check_supplied(UNBOUND, [row])


def test_a_source_begins_where_it_begins() -> None:
    remap = Remap.unbound(KafkaPosition.frontier({0: 7}))
    made = extended(remap, [B(3, 0, 2), B(5, 0, 9)], 6)
    assert [offsets_of(made.at(Timestamp(t))) for t in (3, 4, 5)] == [{0: 7}, {0: 7}, {0: 9}]
    assert check_supplied(made, [B(3, 0, 2)]) == []


def test_only_so_many_times_are_made() -> None:
    rows = [B(t, 0, t) for t in range(1, 9)]
    assert [step.time for step in steps_of(UNBOUND, rows, 3)] == [1, 2, 3]
