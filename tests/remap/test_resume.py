"""Where an output goes on: exactly behind what it has, or an error, never a guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import CompactedPastResume
from reclock.remap.codec import KAFKA
from reclock.remap.follow import time_of
from reclock.remap.resume import resume
from reclock.remap.trace import Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp
from strategies.remaps import records, remaps, times_around

K = KafkaPosition


@given(remaps(), records(), st.data())
def test_an_output_has_exactly_what_is_before_the_resume_position(
    remap: Remap[K], positions: list[K], data: st.DataObject
) -> None:
    times = times_around(remap)
    upper = Timestamp(data.draw(st.integers(0, times.stop)) if times else 0)
    start = resume(remap, Antichain.of(upper))
    for s in positions:
        time = time_of(remap, s)
        written = time is not None and time < upper
        assert written == (not start.less_equal(s))


def test_a_new_output_reads_from_the_origin_even_after_compaction() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(10), K.frontier({0: 4}))
    remap = remap.bound(Timestamp(20), K.frontier({0: 6})).compacted(Timestamp(15))
    assert resume(remap, Antichain.of(Timestamp(0))) == KAFKA.origin


def test_a_complete_output_has_nothing_to_resume() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(10), Antichain())
    assert resume(remap, Antichain()) == Antichain()


def test_bindings_compacted_past_the_output_are_an_error() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(10), K.frontier({0: 4}))
    remap = remap.bound(Timestamp(20), K.frontier({0: 6})).compacted(Timestamp(15))
    assert resume(remap, Antichain.of(Timestamp(16))) == K.frontier({0: 4})
    with pytest.raises(CompactedPastResume) as caught:
        resume(remap, Antichain.of(Timestamp(15)))
    assert "written up to {15}, bindings are definite in [15, {21})" in str(caught.value.detail)
