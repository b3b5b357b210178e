"""The times of positions by a plan are those that the bindings give them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.piece import Covered, Piece
from reclock.ingest.timed import Plan
from reclock.remap.batch import Range, ranges
from reclock.remap.trace import Remap
from reclock.time.position import KafkaPosition, offsets_of
from reclock.time.timestamp import Timestamp

moves = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8)


def planned(moves, bound):
    """Return the plan of some bindings, beyond the first ``bound``, and their remap."""
    remap = Remap.unbound(KafkaPosition.frontier({}))
    at = {0: 0, 1: 0}
    latest = remap.latest
    for nth, (a, b) in enumerate(moves):
        at = {0: at[0] + a, 1: at[1] + b}
        remap = remap.bound(Timestamp(10 * nth + 10), KafkaPosition.frontier(at))
        if nth < bound:
            latest = remap.latest
    return Plan.of(latest, [b for b in remap.bindings if b.time > 10 * bound]), remap, latest


@given(moves, st.integers(0, 4))
def test_a_plan_has_the_times_of_the_bindings(moves, bound):
    plan, remap, latest = planned(moves, bound)
    found = [r for own in plan.ranges.values() for r in own]
    assert sorted(found) == sorted(ranges(remap, offsets_of(remap.latest), latest))


@given(moves, st.integers(0, 4), st.integers(0, 12), st.integers(1, 12))
def test_a_range_is_cut_where_times_change(moves, bound, start, count):
    plan, remap, latest = planned(moves, bound)
    span = Range(0, start, start + count, Timestamp(0))
    times = {
        o: r.time for r in ranges(remap, [0], latest) for o in range(r.start, r.stop)
        if start <= o < start + count
    }  # fmt: skip
    found = plan.timed(span)
    assert {o: r.time for r in found for o in range(r.start, r.stop)} == times
    assert [r for r in found if r.start >= r.stop] == []


def test_what_was_read_by_another_plan_is_out_of_date():
    plan, remap, latest = planned([(2, 0), (2, 1)], 0)
    early, late = Timestamp(10), Timestamp(20)
    right = Piece((Covered(Range(0, 0, 2, early)), Covered(Range(0, 2, 3, late))))
    wrong = Piece((Covered(Range(0, 0, 2, early)), Covered(Range(0, 2, 3, early))))
    across = Piece((Covered(Range(0, 1, 3, early)),))
    assert plan.has(right, latest)
    assert not plan.has(wrong, latest)
    assert not plan.has(across, latest)
    assert plan.has(wrong, remap.latest)  # what is bound is what it is
