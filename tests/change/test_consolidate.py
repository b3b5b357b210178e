from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from model.consolidate import (
    accumulate,
    changes,
    consolidate,
    first_difference,
    first_difference_in,
)
from model.product import Product
from reclock.change.update import Update, advance, negate
from reclock.change.value import sort_key
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Sequence, Timestamp
from strategies.changes import (
    ALL_TIMES,
    LAST,
    Log,
    diffs,
    rows,
    times,
    update_logs,
    values,
)

if TYPE_CHECKING:
    from random import Random

any_logs = update_logs(rows(values))


@given(any_logs)
def test_consolidation_is_idempotent(log: Log) -> None:
    assert consolidate(consolidate(log)) == consolidate(log)


@given(any_logs, st.randoms())
def test_consolidation_forgets_order(log: Log, random: Random) -> None:
    shuffled = random.sample(log, len(log))
    assert consolidate(shuffled) == consolidate(log)


@given(any_logs, any_logs)
def test_consolidation_in_parts(a: Log, b: Log) -> None:
    assert consolidate([*consolidate(a), *consolidate(b)]) == consolidate([*a, *b])


@given(any_logs)
def test_one_sorted_nonzero_update_per_data_and_time(log: Log) -> None:
    places = [(u.time, sort_key(u.data)) for u in consolidate(log)]
    assert places == sorted(set(places))
    assert all(u.diff for u in consolidate(log))


@given(any_logs)
def test_consolidation_keeps_contents(log: Log) -> None:
    assert all(accumulate(log, t) == accumulate(consolidate(log), t) for t in ALL_TIMES)


@given(any_logs, any_logs)
def test_what_is_taken_back_leaves_no_trace(a: Log, b: Log) -> None:
    assert consolidate([*a, *b, *negate(b)]) == consolidate(a)


@given(update_logs(), update_logs(), st.lists(st.builds(Update, rows(), times, diffs), max_size=1))
def test_equal_contents_at_every_time_is_equal_consolidation(a: Log, b: Log, more: Log) -> None:
    other = [*negate(b), *a, *more, *b]
    same = all(accumulate(a, t) == accumulate(other, t) for t in ALL_TIMES)
    assert same is not bool(more)
    assert same is (consolidate(a) == consolidate(other))


@given(update_logs(), times)
def test_accumulate_is_the_sum_by_definition(log: Log, t: Timestamp) -> None:
    contents = accumulate(log, t)
    assert 0 not in contents.values()
    for data in {u.data for u in log}:
        assert contents[data] == sum(u.diff for u in log if u.data == data and u.time <= t)


@given(update_logs(), update_logs(), times)
def test_changes_lead_from_contents_to_contents(a: Log, b: Log, t: Timestamp) -> None:
    before, after = accumulate(a, t), accumulate(b, t)
    step = changes(before, after, t)
    moved = Counter(before)
    moved.update({u.data: u.diff for u in step})
    assert {u.time for u in step} <= {t}
    assert moved == after


def test_partially_ordered_times() -> None:
    at = lambda a, b: Product(Sequence(a), Sequence(b))  # noqa: E731
    log = [Update("x", at(1, 0), 1), Update("x", at(0, 1), 1)]
    assert accumulate(log, at(1, 0)) == {"x": 1}
    assert accumulate(log, at(1, 1)) == {"x": 2}
    assert [u.time for u in consolidate(log)] == [at(0, 1), at(1, 0)]


@given(update_logs(), update_logs())
def test_first_difference_is_the_first_and_names_the_rows(a: Log, b: Log) -> None:
    expected = next((t for t in ALL_TIMES if accumulate(a, t) != accumulate(b, t)), None)
    found = first_difference(a, b, ALL_TIMES)
    assert (found and found.time) == expected
    if found is not None:
        left = accumulate(a, found.time)
        left.subtract(accumulate(b, found.time))
        right = Counter(found.only_left)
        right.subtract(found.only_right)
        assert left == right
        assert all(n > 0 for side in (found.only_left, found.only_right) for n in side.values())


@given(update_logs(), update_logs(), times, times | st.none())
def test_difference_in_an_interval_looks_at_every_time_there(
    a: Log, b: Log, since: Timestamp, upper: Timestamp | None
) -> None:
    end = LAST + 2 if upper is None else upper
    inside = [t for t in ALL_TIMES if since <= t < end]
    frontier = Antichain() if upper is None else Antichain.of(upper)
    later = [*a, Update("only at the end", Timestamp(LAST), 1)]
    for other in (b, later):
        found = first_difference_in(a, other, Antichain.of(since), frontier)
        assert found == first_difference(a, other, inside)


@given(update_logs(), times)
def test_compaction_changes_nothing_since(log: Log, since: Timestamp) -> None:
    frontier = Antichain.of(since)
    compacted = consolidate(advance(log, frontier))
    assert first_difference_in(log, compacted, frontier, Antichain()) is None


def test_a_difference_reads_like_a_sentence() -> None:
    a = [Update((1, "x"), Timestamp(3), 2), Update((2, None), Timestamp(3), 1)]
    b = [Update((0, "y"), Timestamp(3), 1)]
    assert repr(first_difference(a, b, ALL_TIMES)) == (
        "at time 3 only the left has 2 × (1, 'x'), 1 × (2, None); only the right has 1 × (0, 'y')"
    )
