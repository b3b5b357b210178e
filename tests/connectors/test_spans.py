"""Spans cover what ranges cover, and are as long as they can be."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.spans import spans_of
from reclock.remap.batch import Range
from reclock.time.timestamp import Timestamp

cuts = st.lists(st.integers(0, 30), min_size=2, max_size=10).map(sorted)


@given(st.dictionaries(st.sampled_from("abc"), cuts), st.data())
def test_spans_cover_what_ranges_cover(parts: dict[str, list[int]], data: st.DataObject) -> None:
    ranges = [
        Range(part, start, stop, Timestamp(n))
        for part, places in parts.items()
        for n, (start, stop) in enumerate(itertools.pairwise(places))
        if data.draw(st.booleans())
    ]
    spans = spans_of(data.draw(st.permutations(ranges)))
    covered = {(r.part, o) for r in ranges for o in range(r.start, r.stop)}
    assert [(s.part, o) for s in spans for o in range(s.start, s.stop)] == sorted(covered)
    for a, b in itertools.pairwise(spans):
        assert a.part != b.part or a.stop < b.start, "what touches is one span"


def test_parts_with_numbers() -> None:
    ranges = [Range(1, 0, 3, Timestamp(2)), Range(0, 4, 4, Timestamp(2))]
    assert spans_of(ranges) == [(1, 0, 3)]
