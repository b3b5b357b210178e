"""The model's operators against their second reading, written out again at every time."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import join, linear, reduce, sets
from model.consolidate import accumulate, consolidate, first_difference
from model.incremental import incrementalise
from model.temporal import Validity, temporal_filter
from model.topk import Order, top_k
from model.upsert import Upsert, upsert
from reclock.change.update import Update, negate
from reclock.errors import InvalidValue, NegativeCount
from reclock.time.timestamp import Timestamp
from strategies.changes import (
    ALL_TIMES,
    LAST,
    Log,
    multiset_logs,
    rows,
    small_ints,
    times,
    update_logs,
)

by_first = {"left_key": join.columns(0), "right_key": join.columns(0)}


def image(contents: Counter[Any], function: Any) -> Counter[Any]:
    made: Counter[Any] = Counter()
    for row, count in contents.items():
        for each in function(row):
            made[each] += count
    return made


@given(update_logs())
def test_linear_operators_at_every_time(log: Log) -> None:
    first = linear.map_rows(log, lambda row: row[:1])
    large = linear.filter_rows(log, lambda row: None if row[0] is None else row[0] > 1)
    twice = linear.flat_map(log, lambda row: [row] * (row[0] or 0))
    for t in ALL_TIMES:
        contents = accumulate(log, t)
        assert accumulate(first, t) == image(contents, lambda row: [row[:1]])
        assert accumulate(large, t) == {r: n for r, n in contents.items() if (r[0] or 0) > 1}
        assert accumulate(twice, t) == image(contents, lambda row: [row] * (row[0] or 0))


@given(update_logs(), update_logs())
def test_union_adds_and_negate_takes_away(a: Log, b: Log) -> None:
    assert linear.union(linear.union(a, b), negate(b)) == consolidate(a)
    for t in ALL_TIMES:
        expected = accumulate(a, t)
        expected.update(accumulate(b, t))
        assert accumulate(linear.union(a, b), t) == expected


@given(update_logs(), update_logs())
def test_inner_join_is_bilinear_with_the_later_time(a: Log, b: Log) -> None:
    by_rule = [
        Update(x.data + y.data, max(x.time, y.time), x.diff * y.diff)
        for x in a
        for y in b
        if x.data[0] is not None and x.data[0] == y.data[0]
    ]
    joined = incrementalise(partial(join.inner, **by_first))(a, b)
    assert joined == consolidate(by_rule)


@given(multiset_logs(), multiset_logs())
def test_semi_and_anti_partition_the_left(a: Log, b: Log) -> None:
    semi = incrementalise(partial(join.semi, **by_first))(a, b)
    anti = incrementalise(partial(join.anti, **by_first))(a, b)
    assert linear.union(semi, anti) == consolidate(a)


@given(update_logs(), times, times)
def test_as_of_and_until_cut_the_same_collection(
    log: Log, as_of: Timestamp, until: Timestamp
) -> None:
    whole = incrementalise(sets.distinct)(log)
    cut = incrementalise(sets.distinct)(log, as_of=as_of, until=until)
    assert all(as_of <= u.time < until for u in cut)
    assert first_difference(whole, cut, [t for t in ALL_TIMES if as_of <= t < until]) is None


@given(multiset_logs())
def test_global_aggregate_has_a_row_from_as_of_on(log: Log) -> None:
    count = incrementalise(partial(reduce.reduce_all, aggregate=lambda group: (len(group),)))
    out = count(log, as_of=Timestamp(0))
    for t in ALL_TIMES:
        assert accumulate(out, t) == {(accumulate(log, t).total(),): 1}


@given(multiset_logs())
def test_aggregates_see_the_group_with_repetitions_in_order(log: Log) -> None:
    collect = partial(
        reduce.reduce,
        key=join.columns(0),
        aggregate=lambda group: ([text for _, text in group],),
    )
    for row, count in accumulate(incrementalise(collect)(log), Timestamp(LAST)).items():
        key, texts = row
        contents = accumulate(log, Timestamp(LAST))
        expected = sorted(
            (text for (k, text), n in contents.items() for _ in range(n) if k == key),
            key=lambda text: (text is None, text),
        )
        assert (list(texts), count) == (expected, 1)


NEGATIVE = Counter({(1, "a"): -1, (2, "b"): 1})
EMPTY: Counter[Any] = Counter()


@pytest.mark.parametrize(
    "operator",
    [
        lambda: reduce.reduce(NEGATIVE, join.columns(0), lambda group: (len(group),)),
        lambda: reduce.reduce_all(NEGATIVE, lambda group: (len(group),)),
        lambda: top_k(NEGATIVE, join.columns(0), (Order(1),), 1),
        lambda: join.semi(EMPTY, NEGATIVE, **by_first),
        lambda: join.anti(EMPTY, NEGATIVE, **by_first),
        lambda: join.left_outer(EMPTY, NEGATIVE, **by_first, right_width=2),
        lambda: join.right_outer(NEGATIVE, EMPTY, **by_first, left_width=2),
        lambda: join.full_outer(NEGATIVE, EMPTY, **by_first, left_width=2, right_width=2),
    ],
)
def test_questions_about_multisets_refuse_negative_counts(operator: Any) -> None:
    with pytest.raises(NegativeCount) as caught:
        operator()
    assert caught.value.detail == "(1, 'a') occurs -1 times"


def test_negative_counts_are_exact_where_linear_and_absent_where_clamped() -> None:
    one = Counter({(1, "z"): 1})
    assert join.inner(NEGATIVE, one, **by_first) == {(1, "a", 1, "z"): -1}
    assert join.semi(NEGATIVE, one, **by_first) == {(1, "a"): -1}
    assert join.left_outer(NEGATIVE, EMPTY, **by_first, right_width=1) == {
        (1, "a", None): -1,
        (2, "b", None): 1,
    }
    assert sets.threshold(NEGATIVE) == sets.distinct(NEGATIVE) == {(2, "b"): 1}
    assert sets.except_all(EMPTY, NEGATIVE) == EMPTY
    assert sets.intersect_all(NEGATIVE, NEGATIVE) == {(2, "b"): 1}


bounds = st.none() | st.integers(-2, LAST + 3)


def validity(row: tuple[Any, ...]) -> Validity | None:
    null, lower, upper = row
    return None if null else Validity(lower, upper)


@given(update_logs(rows(st.booleans(), bounds, bounds)), times | st.none())
def test_temporal_filter_is_a_filter_at_every_time(log: Log, until: Timestamp | None) -> None:
    out = temporal_filter(log, validity, until)
    for t in ALL_TIMES:
        if until is None or t < until:
            valid = {
                row: n
                for row, n in accumulate(log, t).items()
                if not row[0] and (row[1] is None or row[1] <= t) and (row[2] is None or t < row[2])
            }
            assert accumulate(out, t) == valid
            assert all((v := validity(row)) and v.covers(t) for row in valid)
    assert until is None or all(u.time < until for u in out)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (3, 8, [(5, 1), (8, -1)]),
        (6, 8, [(6, 1), (8, -1)]),
        (None, None, [(5, 1)]),
        (6, 6, []),
        (8, 6, []),
        (1, 5, []),
        (2**63, None, []),
        (-5, 2**70, [(5, 1)]),
    ],
)
def test_temporal_filter_as_updates(
    lower: int | None, upper: int | None, expected: list[tuple[int, int]]
) -> None:
    out = temporal_filter([Update("x", Timestamp(5), 1)], lambda _: Validity(lower, upper))
    assert [(u.time, u.diff) for u in out] == expected


upsert_logs = st.lists(
    st.tuples(rows(small_ints), st.none() | rows(small_ints), st.integers(0, 2)), max_size=15
)


@given(upsert_logs, st.randoms())
def test_upsert_replayed_into_a_dictionary(log: list[tuple[Any, Any, int]], random: Any) -> None:
    messages, time = [], 0
    for offset, (key, value, step) in enumerate(log):
        time += step
        messages.append(Upsert(key, value, Timestamp(time), offset))
    out = upsert(random.sample(messages, len(messages)))
    for t in range(time + 2):
        table: dict[Any, Any] = {}
        for message in messages:
            if message.time <= t:
                table.pop(message.key, None)
                if message.value is not None:
                    table[message.key] = message.value
        assert accumulate(out, Timestamp(t)) == Counter(k + v for k, v in table.items())


@pytest.mark.parametrize(("time", "offset"), [(4, 6), (5, 5)])
def test_upserts_out_of_order_are_refused(time: int, offset: int) -> None:
    log = [
        Upsert((1,), ("a",), Timestamp(5), 5),
        Upsert((1,), ("b",), Timestamp(time), offset),
    ]
    with pytest.raises(InvalidValue, match="not in one order of offsets and times"):
        upsert(log)
