"""Dealing out what is to be read: all of it, in order, no more than there is room for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reclock.ingest import shares as module
from reclock.ingest.shares import records_of, shares
from reclock.remap.batch import Range
from reclock.time.timestamp import Timestamp

T = Timestamp(0)

spans = st.dictionaries(
    st.integers(0, 20), st.tuples(st.integers(0, 50), st.integers(1, 2_000)), min_size=1
).map(lambda made: [Range(part, a, a + n, T) for part, (a, n) in sorted(made.items())])


@given(spans, st.integers(1, 5), st.integers(1, 3), st.integers(0, 3))
def test_what_is_dealt_out_is_all_there_is_in_order(ranges, tasks, width, packed):
    def grain(part):
        return None if part < packed else width

    dealt = shares(ranges, grain, tasks, 10**9)
    reached = {r.part: r.start for r in ranges}
    for part, start, stop, _ in (r for share in dealt for r in share):
        assert reached[part] == start < stop
        reached[part] = stop
    assert reached == {r.part: r.stop for r in ranges}
    size = -(-records_of(ranges, grain) // tasks)
    for share in dealt:
        cut = [r for r in share if grain(r.part) is not None]
        assert records_of(cut, grain) <= size + len(cut)


@given(spans, st.integers(1, 5), st.integers(1, 3), st.integers(1, 500))
def test_no_more_is_read_than_there_is_room_for(ranges, tasks, width, most):
    dealt = [r for share in shares(ranges, lambda part: width, tasks, most) for r in share]
    assert 0 < sum(-(-(r.stop - r.start) // width) for r in dealt) <= most + 2 * len(dealt)


def test_the_longest_way_comes_first_and_few_parts_are_opened(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 10)
    ranges = [Range(part, 0, 5 + part, T) for part in range(100)]
    dealt = [r for share in shares(ranges, lambda part: 1, 2, 40) for r in share]
    assert [r.part for r in dealt if r.start == 0] == [96, 97, 98, 99]


def test_a_compressed_file_is_one_share():
    dealt = shares([Range("a.gz", 7, 10**9, T), Range("b", 0, 10, T)], lambda part: None, 4, 100)
    assert dealt[0] == [Range("a.gz", 7, 10**9, T)]
