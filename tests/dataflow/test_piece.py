"""Cutting what is read into pieces: every record once, in order, in the ranges that say so."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reclock.arrangement.run import RunRef
from reclock.dataflow import piece as module
from reclock.dataflow.piece import Covered, Cutter, Piece, contiguous
from reclock.remap.batch import Range
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

T = Timestamp(0)


class Records:
    """Offsets with so many records each; those in ``bad`` have a fault."""

    def __init__(self, counts, batch, bad=()):
        self.counts, self.batch, self.bad = counts, batch, bad

    def __call__(self, ranges):
        for part, start, stop, _ in ranges:
            offsets = [o for o in range(start, stop) for _ in range(self.counts.get(o, 0))]
            ends = [i for i in range(1, len(offsets)) if offsets[i] != offsets[i - 1]]
            ends = [i for n, i in enumerate(ends, 1) if n % self.batch == 0]
            for first, last in zip([0, *ends], [*ends, len(offsets)], strict=True):
                some = offsets[first:last]
                faults = ["22P04" if o in self.bad else None for o in some]
                columns = [
                    pa.array([part] * len(some), pa.int32()),
                    pa.array(some, pa.int64()),
                    pa.array(faults, pa.string()),
                    pa.array([f"at {o}" for o in some], pa.string()),
                ]
                yield pa.record_batch(columns, names=["part", "offset", "code", "message"])


def rows_of(cuts):
    return [
        (span.part, offset)
        for cut in cuts
        for span, batches in cut.records
        for batch in batches
        for offset in batch.column(1).to_pylist()
    ]


counts = st.dictionaries(st.integers(0, 30), st.integers(1, 3))


@given(counts, st.integers(1, 5), st.integers(1, 6), st.integers(0, 31), st.integers(0, 31))
@example({0: 3, 1: 1}, 5, 2, 0, 3)
def test_pieces_have_every_record_once_and_no_position_in_two(counts, batch, most, begin, middle):
    ranges = [Range(0, begin, 31, T), Range(1, 0, middle, T)]
    ranges = [r for r in ranges if r.stop > r.start]
    read = Records(counts, batch)
    cuts = list(Cutter(most).cuts(read, ranges))
    expected = [(r.part, o) for r in ranges for b in read([r]) for o in b.column(1).to_pylist()]
    assert rows_of(cuts) == expected
    reached = {r.part: r.start for r in ranges}
    for cut in cuts:
        rows = 0
        for span, batches in cut.records:
            assert reached[span.part] == span.start < span.stop
            reached[span.part] = span.stop
            found = [o for b in batches for o in b.column(1).to_pylist()]
            assert all(span.start <= o < span.stop for o in found)
            rows += len(found)
        assert rows <= most + 2  # the records of one position stay together
    assert reached == {r.part: r.stop for r in ranges}


@given(counts, st.integers(1, 5), st.integers(1, 6), st.sets(st.integers(0, 30), max_size=2))
def test_a_source_that_stops_has_all_before_the_first_fault(counts, batch, most, bad):
    read = Records(counts, batch, bad)
    cuts = list(Cutter(most, 2).cuts(read, [Range(0, 0, 31, T), Range(1, 0, 31, T)]))
    there = sorted(bad & counts.keys())
    faults = [cut.fault for cut in cuts if cut.fault is not None]
    if not there:
        assert faults == []
        assert len(rows_of(cuts)) == 2 * sum(counts.values())
        return
    assert faults == [f"at {there[0]}"]
    assert cuts[-1].fault is not None
    expected = [(0, o) for o, n in sorted(counts.items()) for _ in range(n) if o < there[0]]
    assert rows_of(cuts) == expected
    stops = [span.stop for cut in cuts for span, _ in cut.records]
    assert stops[-1:] in ([there[0]], [])


def test_wide_records_are_cut_by_their_size(monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 1)
    read = Records(dict.fromkeys(range(6), 1), 2)
    cuts = list(Cutter(1_000).cuts(read, [Range(0, 0, 9, T)]))
    assert [cut.records[0][0][1:3] for cut in cuts] == [(0, 2), (2, 4), (4, 9)]


def piece(*spans, fault=None):
    return Piece(tuple(Covered(Range(*span, T)) for span in spans), fault=fault)


def test_what_lies_beyond_a_stop_does_not_follow():
    first = piece((0, 0, 5), fault="wrong")
    beyond, other, mixed = piece((0, 10, 20)), piece((1, 3, 9)), piece((1, 9, 12), (0, 20, 30))
    last = piece((1, 12, 13))
    found, others = contiguous([first, beyond, other, mixed, last], {1: 3})
    assert (found, others) == ([first, other], [beyond, mixed, last])


def test_two_ranges_of_a_part_in_one_piece_follow_one_another():
    both = piece((0, 0, 5), (0, 5, 9))
    assert contiguous([both, piece((0, 9, 10))], {})[1] == []


@pytest.mark.parametrize("letters", [None, "l"])
def test_what_a_task_sends_is_what_the_driver_gets(letters):
    whole = Description(at(0), at(1), at(0))
    ref = RunRef("staged 0@3", whole, 2, 100, 7, "staged-u1.0-00.seg")
    letter = (
        None if letters is None else RunRef("letters 0@3", whole, 1, 9, 8, "staged-u1.0-00.seg")
    )
    covered = Covered(Range("a.csv", 3, 9, Timestamp(5)), 3, 1, 1)
    sent = Piece((covered,), (ref,), letter, 10, 1, "é")
    assert Piece.from_text(sent.text()) == sent
    assert sent.segments == {"staged-u1.0-00.seg"}
    assert sent.rows == 3
