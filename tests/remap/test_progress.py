"""Offsets per time and times per offset, now and at past times still kept."""

from __future__ import annotations

import pytest

from reclock.errors import InvalidValue, Unreadable
from reclock.remap.codec import KAFKA
from reclock.remap.progress import BindingRow, binding_rows, offsets_at, timestamp_of
from reclock.remap.trace import Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

K = KafkaPosition


@pytest.fixture
def remap() -> Remap[K]:
    remap = Remap.unbound(KAFKA.origin)
    for t, offsets in (1000, {0: 5}), (2000, {0: 5, 1: 2}), (3000, {0: 9, 1: 2}):
        remap = remap.bound(Timestamp(t), K.frontier(offsets))
    return remap.compacted(Timestamp(1500))


def test_rows(remap: Remap[K]) -> None:
    assert list(binding_rows(remap)) == [
        BindingRow(Timestamp(1500), 0, 5),
        BindingRow(Timestamp(2000), 0, 5),
        BindingRow(Timestamp(2000), 1, 2),
        BindingRow(Timestamp(3000), 0, 9),
        BindingRow(Timestamp(3000), 1, 2),
    ]


def test_offsets_at_times(remap: Remap[K]) -> None:
    assert offsets_at(remap, Timestamp(1999)) == {0: 5}
    assert offsets_at(remap, Timestamp(2000)) == {0: 5, 1: 2}
    with pytest.raises(Unreadable):
        offsets_at(remap, Timestamp(1000))


def test_times_of_offsets(remap: Remap[K]) -> None:
    assert timestamp_of(remap, K.exact(0, 4)) == 1500
    assert timestamp_of(remap, K.exact(1, 1)) == 2000
    with pytest.raises(Unreadable, match="not bound yet"):
        timestamp_of(remap, K.exact(0, 9))
    with pytest.raises(InvalidValue, match="unknown partition"):
        timestamp_of(remap, K.exact(7, 0))
    with pytest.raises(InvalidValue, match="unknown partition"):
        timestamp_of(remap, K.everything())


def test_every_record_of_a_complete_source_has_a_time(remap: Remap[K]) -> None:
    complete = remap.bound(Timestamp(4000), Antichain())
    assert timestamp_of(complete, K.exact(0, 4)) == 1500
    assert timestamp_of(complete, K.exact(0, 9)) == timestamp_of(complete, K.exact(7, 0)) == 4000
