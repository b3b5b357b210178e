"""Accumulators against plain Python at every time: exact, whatever was there and is gone."""

from __future__ import annotations

import math
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphs.deltas import Arranged, cut, delta_of, log_of
from model import reduce as model
from model.consolidate import consolidate, first_difference
from model.incremental import incrementalise
from model.join import columns
from reclock.arrangement.layout import diff_of
from reclock.arrangement.store import LocalStore
from reclock.arrangement.stream import concat
from reclock.change.update import Update
from reclock.dataflow import delta as deltas
from reclock.dataflow.operators.accumulate.average import average_of
from reclock.dataflow.operators.accumulate.count import Counted
from reclock.dataflow.operators.accumulate.total import sum_of
from reclock.dataflow.operators.accumulate.truth import Truth
from reclock.dataflow.operators.accumulate.variance import Variance
from reclock.dataflow.operators.reduce import Reduce
from reclock.dataflow.trace import EmptyTrace
from reclock.errors import InvalidValue, NegativeCount
from reclock.time.timestamp import Timestamp
from strategies.changes import (
    ALL_TIMES,
    LAST,
    Log,
    multiset_logs,
    rows,
    small_ints,
    small_texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MONEY = pa.decimal128(12, 2)
WIDE = pa.decimal128(38, 4)
# 0, 1: keys; 2: filter; 3: int32; 4: int64; 5: money; 6: wide; 7: double; 8: real; 9: bool
TYPES = (
    pa.int64(), pa.string(), pa.bool_(), pa.int32(), pa.int64(),
    MONEY, WIDE, pa.float64(), pa.float32(), pa.bool_(),
)  # fmt: skip
doubles = (
    st.sampled_from(
        [
            0.0,
            -0.0,
            0.1,
            -0.3,
            1e300,
            -1e300,
            1.7e308,
            5e-324,
            1e-310,
            math.nan,
            math.inf,
            -math.inf,
        ]
    )
    | st.floats()
)
inputs = rows(
    small_ints,
    small_texts,
    st.sampled_from([True, False, None]),
    st.sampled_from([1, -5, 2**31 - 1, None]),
    st.sampled_from([1, -5, 2**63 - 1, -(2**63), None]),
    st.sampled_from([Decimal("0.01"), Decimal("-99.99"), Decimal("9999999999.99"), None]),
    st.sampled_from([Decimal("0.0001"), Decimal("9" * 20 + ".9999"), Decimal("-7.5"), None]),
    st.none() | doubles,
    st.none() | st.floats(width=32),
    st.sampled_from([True, False, None]),
)
logs = multiset_logs(inputs, max_size=8)
bounds = st.sets(st.integers(1, LAST)).map(lambda cuts: (0, *sorted(cuts), LAST + 1))

AGGREGATES: dict[str, Any] = {
    "count(*)": Counted(),
    "count(x) filter": Counted(3, 2),
    "sum(int32)": sum_of(3, pa.int32()),
    "sum(int64) filter": sum_of(4, pa.int64(), 2),
    "sum(money)": sum_of(5, MONEY),
    "sum(wide)": sum_of(6, WIDE),
    "sum(double)": sum_of(7, pa.float64()),
    "sum(real)": sum_of(8, pa.float32()),
    "avg(int64)": average_of(4, pa.int64()),
    "avg(money) filter": average_of(5, MONEY, 2),
    "avg(wide)": average_of(6, WIDE),
    "avg(double)": average_of(7, pa.float64()),
    "var_samp(double)": Variance(7, pa.float64()),
    "var_pop(money)": Variance(5, MONEY, sample=False),
    "stddev_samp(int64)": Variance(4, pa.int64(), root=True),
    "stddev_pop(double) filter": Variance(7, pa.float64(), sample=False, root=True, filter=2),
    "bool_and": Truth(9, every=True),
    "bool_or filter": Truth(9, every=False, filter=2),
}


def nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def float_sum(values: list[float]) -> float:
    if not all(map(math.isfinite, values)):
        return sum(v for v in values if not math.isfinite(v))
    return nearest(sum(map(Fraction, values), Fraction(0)))


def half_up(number: Fraction, scale: int) -> Decimal:
    with localcontext(prec=200):
        exact = Decimal(number.numerator) / Decimal(number.denominator)
        return exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def variance(values: list[Any], sample: bool, root: bool) -> float | None:
    need = 1 if sample else 0
    if len(values) <= need:
        return None
    if not all(math.isfinite(v) for v in values):
        return math.nan
    exact = [Fraction(v) for v in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    made = sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (len(exact) - need)
    if not root:
        return nearest(made)
    over, under = math.isqrt(made.numerator), math.isqrt(made.denominator)
    if over**2 == made.numerator and under**2 == made.denominator:
        return nearest(Fraction(over, under))  # half-way between two floats, perhaps
    with localcontext(prec=60, Emax=10**6, Emin=-(10**6)):
        return nearest(Fraction((Decimal(made.numerator) / Decimal(made.denominator)).sqrt()))


def by_hand(name: str, group: list[Any]) -> Any:  # noqa: PLR0911 - one per family
    """Compute an aggregate from its definition."""
    aggregate = AGGREGATES[name]
    if aggregate.filter is not None:
        group = [row for row in group if row[aggregate.filter]]
    if aggregate.column is None:
        return len(group)
    values = [row[aggregate.column] for row in group if row[aggregate.column] is not None]
    if name.startswith("count"):
        return len(values)
    if isinstance(aggregate, Variance):
        return variance(values, aggregate.sample, aggregate.root)
    if not values:
        return None
    if name.startswith("bool"):
        return all(values) if aggregate.every else any(values)
    if pa.types.is_floating(aggregate.type):
        total = float_sum(values)
        if name == "sum(real)":
            with np.errstate(over="ignore"):
                return float(np.float32(total))
        if name == "avg(double)" and all(map(math.isfinite, values)):
            return nearest(sum(map(Fraction, values), Fraction(0)) / len(values))
        return total
    exact = sum(map(Fraction, values), Fraction(0))
    if name.startswith("avg"):
        return half_up(exact / len(values), aggregate.type.scale)
    if pa.types.is_decimal(aggregate.type):
        return half_up(exact, aggregate.type.scale)
    return int(exact)


def run(reduce: Reduce, log: Log, cuts: tuple[int, ...], store: LocalStore) -> tuple[Log, Log]:
    state = Arranged(reduce.layout, store)
    out: Log = []
    errors: Log = []
    for tick in cut(log, cuts):
        made = reduce.step(delta_of(reduce.types, tick.updates), state.trace, tick.lower)
        assert deltas.types_of(made.delta) == reduce.result_types
        out += log_of(made.delta)
        errors += log_of(made.errors)
        assert made.state.schema == reduce.layout.schema
        state.append(made.state, tick.upper)
        if tick.upper % 2:
            state.compact()
    return out, errors


def close(made: Log, expected: Log) -> Log:
    """Return ``made`` with square roots that are one unit in the last place off corrected."""
    roots = {x for u in expected for x in u.data if isinstance(x, float) and math.isfinite(x)}

    def fix(x: Any) -> Any:
        if isinstance(x, float) and math.isfinite(x) and x not in roots:
            near = [r for r in roots if abs(r - x) <= math.ulp(x)]
            return near[0] if near else x
        return x

    return [u._replace(data=tuple(map(fix, u.data))) for u in made]


@pytest.fixture(params=[None, 1], ids=["hashes", "collisions"], scope="module")
def hashing(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            same = lambda _, size: np.full(size, 7, np.int64)  # noqa: E731 - one line
            patch.setattr("reclock.dataflow.delta.key_hash", same)
        yield


@pytest.mark.usefixtures("hashing")
@given(
    log=logs,
    names=st.lists(st.sampled_from(list(AGGREGATES)), max_size=4),
    key=st.sampled_from([(0,), (1, 0), (7,)]),
    cuts=bounds,
)
def test_aggregates_are_the_models_at_every_time(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    log: Log,
    names: list[str],
    key: tuple[int, ...],
    cuts: tuple[int, ...],
) -> None:
    reduce = Reduce(TYPES, key, tuple(AGGREGATES[name] for name in names))
    batch = partial(
        model.reduce,
        key=columns(*key),
        aggregate=lambda group: tuple(by_hand(name, group) for name in names),
    )
    expected = incrementalise(batch)(log)
    store = LocalStore(tmp_path_factory.getbasetemp())
    made, errors = run(reduce, log, cuts, store)
    assert errors == []
    assert first_difference(close(made, expected), expected, ALL_TIMES) is None
    assert len(made) == len(consolidate(made)), "nothing is said that comes to nothing"
    at_once, _ = run(reduce, log, (0, LAST + 1), store)
    assert consolidate(at_once) == consolidate(made)


@given(log=logs, names=st.lists(st.sampled_from(list(AGGREGATES)), max_size=3), cuts=bounds)
@example(log=[], names=["count(*)", "sum(double)"], cuts=(0, 5, LAST + 1))
def test_the_global_aggregate_always_has_one_row(
    tmp_path_factory: pytest.TempPathFactory, *, log: Log, names: list[str], cuts: tuple[int, ...]
) -> None:
    reduce = Reduce(TYPES, (), tuple(AGGREGATES[name] for name in names), global_=True)
    batch = partial(
        model.reduce_all, aggregate=lambda group: tuple(by_hand(name, group) for name in names)
    )
    expected = incrementalise(batch)(log, as_of=Timestamp(0))
    made, _ = run(reduce, log, cuts, LocalStore(tmp_path_factory.getbasetemp()))
    assert first_difference(close(made, expected), expected, ALL_TIMES) is None


@pytest.mark.usefixtures("hashing")
@given(
    log=logs,
    names=st.lists(st.sampled_from(list(AGGREGATES)), max_size=4),
    key=st.sampled_from([(), (0,), (1, 0), (7,)]),
    data=st.data(),
)
def test_parts_of_the_changes_come_to_what_all_of_them_do(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    log: Log,
    names: list[str],
    key: tuple[int, ...],
    data: st.DataObject,
) -> None:
    """Parts need not be multisets: a row may be in one and taken away in another."""
    aggregates = tuple(AGGREGATES[name] for name in names)
    reduce = Reduce(TYPES, key, aggregates, global_=not key)
    state = Arranged(reduce.layout, LocalStore(tmp_path_factory.getbasetemp()))
    for tick in cut(log, (0, 4, LAST + 1)):
        whole = reduce.step(delta_of(TYPES, tick.updates), state.trace, tick.lower)
        size = len(tick.updates)
        places = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        parts = [
            delta_of(TYPES, [u for u, p in zip(tick.updates, places, strict=True) if p == i])
            for i in range(3)
        ]
        partials = [reduce.partial(part, state.trace, tick.lower) for part in parts]
        made = reduce.combined(concat(partials), state.trace)
        for one, other in zip(made, whole, strict=True):
            assert one.schema == other.schema
            assert Counter(map(repr, log_of(one))) == Counter(map(repr, log_of(other)))
        state.append(whole.state, tick.upper)


@given(log=logs, names=st.lists(st.sampled_from(list(AGGREGATES)), max_size=4))
def test_what_is_inserted_and_deleted_leaves_no_trace_in_the_state(
    tmp_path_factory: pytest.TempPathFactory, *, log: Log, names: list[str]
) -> None:
    undone = log + [Update(u.data, Timestamp(LAST), -u.diff) for u in log]
    aggregates = tuple(AGGREGATES[name] for name in names)
    for key, global_ in (((0,), False), ((), True)):
        reduce = Reduce(TYPES, key, aggregates, global_)
        state = Arranged(reduce.layout, LocalStore(tmp_path_factory.getbasetemp()))
        begun = []
        for tick in cut(undone, (0, 4, LAST + 1)):
            made = reduce.step(delta_of(TYPES, tick.updates), state.trace, tick.lower)
            state.append(made.state, tick.upper)
            begun.append(made.state)
        total: Counter[Any] = Counter()
        for batch in begun:
            for row in batch.to_pylist():
                diff = row.pop("diff")
                row.pop("time")
                total[repr(row)] += diff
        left = {row: n for row, n in total.items() if n}
        nothing = reduce.step(deltas.empty(TYPES), EmptyTrace(reduce.layout), 0).state
        assert list(left.values()) == diff_of(nothing).tolist()


def step(reduce: Reduce, log: Log) -> Any:
    return reduce.step(delta_of(reduce.types, log), EmptyTrace(reduce.layout), 0)


def test_sums_out_of_range_are_errors_while_they_are() -> None:
    reduce = Reduce((pa.string(), pa.int32()), (0,), (sum_of(1, pa.int32()), Counted()))
    many = 2**33
    log = [
        Update(("x", 2**31 - 1), Timestamp(1), many),
        Update(("x", 2**31 - 1), Timestamp(3), 1 - many),
        Update(("y", 5), Timestamp(1), 1),
    ]
    made = step(reduce, log)
    message = "bigint out of range"
    assert sorted(log_of(made.errors), key=lambda u: u.time) == [
        Update(("22003", message), Timestamp(1), 1),
        Update(("22003", message), Timestamp(3), -1),
    ]
    assert consolidate(log_of(made.delta)) == consolidate(
        [
            Update(("x", 2**31 - 1, 1), Timestamp(3), 1),
            Update(("y", 5, 1), Timestamp(1), 1),
        ]
    )


def test_a_numeric_sum_of_39_digits_is_an_error() -> None:
    kind = pa.decimal128(38, 0)
    largest = Decimal(10**38 - 1)
    reduce = Reduce((kind,), (), (sum_of(0, kind),))
    one = Update((largest,), Timestamp(1), 1)
    assert [u.data for u in log_of(step(reduce, [one]).delta)] == [(largest,)]
    two = step(reduce, [one, one])
    assert two.delta.num_rows == 0
    assert [u.data for u in log_of(two.errors)] == [("22003", "numeric(38,0) out of range")]


def test_more_retractions_than_rows_name_the_group() -> None:
    reduce = Reduce((pa.string(), pa.int64()), (0,), (sum_of(1, pa.int64()),))
    with pytest.raises(NegativeCount, match=r"from group \('x',\) than were there") as caught:
        step(reduce, [Update(("x", 1), Timestamp(1), -2)])
    assert caught.value.detail == "it would have -2 rows"
    with pytest.raises(NegativeCount, match=r"group \('y',\)"):
        step(
            reduce,
            [Update(("y", 1), Timestamp(1), 1), Update(("y", 2), Timestamp(1), -1)],
        )


def test_a_group_that_always_exists_has_no_key() -> None:
    with pytest.raises(InvalidValue, match="no group that always exists"):
        Reduce(TYPES, (0,), (), global_=True)


def test_aggregates_share_their_terms() -> None:
    kind = pa.float64()
    aggregates = (sum_of(0, kind), average_of(0, kind), Variance(0, kind), Counted(0))
    reduce = Reduce((kind,), (), aggregates)
    assert len(reduce.terms) == 1 + 6
