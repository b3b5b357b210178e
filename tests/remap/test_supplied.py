"""Bring-your-own bindings are a remap, or an error that names the offending pair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import BindingsNotMonotone, InvalidValue
from reclock.remap.follow import time_of
from reclock.remap.supplied import SuppliedBinding, supplied_remap
from reclock.testing.strategies.remaps import PARTITIONS
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

B = SuppliedBinding
ROWS = st.lists(st.builds(B, st.integers(0, 9), PARTITIONS, st.integers(0, 9)), max_size=8)


@given(ROWS)
def test_rows_are_accepted_exactly_when_no_partition_goes_back(rows: list[B]) -> None:
    def contradicts(a: B, b: B) -> bool:
        same = a.partition == b.partition
        early = a.timestamp <= b.timestamp
        back = a.offset > b.offset or (a.timestamp == b.timestamp and a.offset != b.offset)
        return same and early and back

    bad = any(contradicts(a, b) for a in rows for b in rows)
    if bad:
        with pytest.raises(BindingsNotMonotone):
            supplied_remap(rows, Timestamp(10))
        return
    remap = supplied_remap(rows, Timestamp(10))
    for partition in (0, 1, 2, 7, 40, 41):
        for offset in range(10):
            times = [r.timestamp for r in rows if r.partition == partition and r.offset > offset]
            expected = min(times, default=None)
            assert time_of(remap, KafkaPosition.exact(partition, offset)) == expected


def test_closing_keeps_what_is_bound_and_seals() -> None:
    remap = supplied_remap([B(5, 0, 3)], Timestamp(6), closed=True)
    assert remap.is_sealed
    assert remap.at(Timestamp(10**9)) == KafkaPosition.frontier({0: 3})
    assert time_of(remap, KafkaPosition.exact(0, 3)) is None


def test_no_rows_bind_nothing_but_time_passes() -> None:
    assert supplied_remap([], Timestamp(8)).upper == Antichain.of(Timestamp(8))
    assert supplied_remap([], Timestamp(0)).bindings == ()


def test_two_offsets_of_a_partition_at_one_time_contradict() -> None:
    with pytest.raises(BindingsNotMonotone) as caught:
        supplied_remap([B(5, 1, 4), B(5, 1, 3)], Timestamp(9))
    assert caught.value.detail == (
        "(timestamp 5, partition 1, offset 3) is followed by (timestamp 5, partition 1, offset 4)"
    )
    assert caught.value.hint == "a partition has one offset at a timestamp"


@pytest.mark.parametrize("row", [B(-1, 0, 0), B(0, -1, 0), B(0, 0, -1)])
def test_negative_numbers_are_refused(row: B) -> None:
    with pytest.raises(InvalidValue, match="invalid binding"):
        supplied_remap([row], Timestamp(9))


def test_numbers_past_64_bits_are_refused() -> None:
    with pytest.raises(InvalidValue, match="does not fit 64 bits"):
        supplied_remap([B(1, 0, 2**63)], Timestamp(9))
    with pytest.raises(InvalidValue, match="is not complete"):
        supplied_remap([B(2**63, 0, 1)], Timestamp(2**63 - 1))


def test_rows_at_times_not_complete_are_refused() -> None:
    with pytest.raises(InvalidValue, match="is not complete"):
        supplied_remap([B(9, 0, 1)], Timestamp(9))
