"""Look-ups one key at a time: the rows that arrays give, at every time, from any runs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.collections import arranged
from reclock.arrangement.store import LocalStore
from reclock.dataflow import point as module
from reclock.dataflow.direct import direct
from reclock.dataflow.point import COLD, look_up, point_of
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import rows_of
from reclock.sql import types as t
from reclock.sql.plan.functions import find_function
from reclock.sql.plan.late import Late
from reclock.sql.plan.relation import Filter, Get, Project, QueryPlan
from reclock.sql.plan.scalar import Call, ColumnRef, Literal
from reclock.sql.schema import Column, Schema
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

KINDS = [t.BIGINT, t.TEXT, t.TIMESTAMPTZ, t.DATE, t.BYTEA, t.BOOLEAN, t.DOUBLE]
VALUES = [
    [-1, 0, 2**62, None], ["", "a", "ä" * 200, None],
    [datetime(2026, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None],
    [date(2026, 1, 1), None], [b"", b"\0", None], [True, False, None], [0.0, float("nan"), None],
]  # fmt: skip
SCHEMA = Schema(tuple(Column(f"c{i}", kind) for i, kind in enumerate(KINDS)))
ITEM = "u1"


def queried(equal, columns):
    """Plan a look-up of columns where others equal late values."""
    leaf = Get(ITEM, "t", SCHEMA, EPOCH_MS, frozenset())
    predicates = tuple(
        Call(
            find_function("=", (KINDS[at], KINDS[at])),
            (ColumnRef(at, KINDS[at]), Literal(value, KINDS[at])),
            t.BOOLEAN,
        )
        for at, value in equal.items()
    )
    outputs = tuple((f"o{i}", ColumnRef(at, KINDS[at])) for i, at in enumerate(columns))
    return QueryPlan(Project(Filter(leaf, predicates), outputs), len(columns))


@st.composite
def histories(draw):
    """Draw changes at two times, of which the second takes back some of the first."""
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, VALUES)), max_size=6))
    first = Counter(
        rows + draw(st.lists(st.sampled_from(rows), max_size=3) if rows else st.just([]))
    )
    second = Counter(draw(st.lists(st.tuples(*map(st.sampled_from, VALUES)), max_size=3)))
    for row in draw(
        st.lists(st.sampled_from(rows), max_size=3, unique=True) if rows else st.just([])
    ):
        second[row] -= 1
    return [(first, 1), (second, 2)]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), history=histories())
def test_the_rows_are_those_of_arrays(tmp_path_factory, data, history):
    key = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=2, unique=True)))
    others = data.draw(st.lists(st.integers(0, 5), max_size=1))
    equal = {at: data.draw(st.sampled_from(VALUES[at][:-1])) for at in (*key, *others)}
    columns = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    late = {at: Late(i) for i, at in enumerate(equal)}
    point = point_of(queried(late, columns))
    leaf = arranged(arrow_types(SCHEMA), key, history, LocalStore(tmp_path_factory.mktemp("s")))
    assert point is not None
    assert point.by_key(leaf.keying)
    for now in (Timestamp(1), Timestamp(2)):
        plan = queried(equal, columns)
        kinds = [KINDS[at] for at in columns]
        expected = Counter(map(repr, rows_of(direct(plan, {ITEM: [leaf]}, now), kinds)))
        rows = look_up(point, [*equal.values()], leaf.keying, leaf.shard, now, patient=True)
        if rows is None:  # values that Python cannot add up: floats, of more than one update
            assert 6 in columns
        else:
            assert Counter(map(repr, rows)) == expected


def test_what_was_not_read_before_takes_patience(tmp_path):
    history = [(Counter({(i, "x", None, None, None, None, None): 1 for i in range(9)}), 1)]
    leaf = arranged(arrow_types(SCHEMA), (0,), history, LocalStore(tmp_path))
    point = point_of(queried({0: Late(0)}, [1]))
    ask = (point, [3], leaf.keying, leaf.shard, Timestamp(1))
    assert look_up(*ask, patient=False) == COLD
    assert look_up(*ask, patient=True) == [("x",)]
    assert look_up(*ask, patient=False) == [("x",)]


def test_many_rows_are_for_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FEW", 2)
    rows = Counter({(1, str(i), None, None, None, None, None): 1 for i in range(3)})
    leaf = arranged(arrow_types(SCHEMA), (0,), [(rows, 1)], LocalStore(tmp_path))
    point = point_of(queried({0: Late(0)}, [1]))
    assert look_up(point, [1], leaf.keying, leaf.shard, Timestamp(1), patient=True) is None
    assert look_up(point, [2], leaf.keying, leaf.shard, Timestamp(1), patient=True) == []


def test_a_row_that_is_there_a_negative_number_of_times_is_for_arrays(tmp_path):
    rows = Counter({(1, "x", None, None, None, None, None): -1})
    leaf = arranged(arrow_types(SCHEMA), (0,), [(rows, 1)], LocalStore(tmp_path))
    point = point_of(queried({0: Late(0)}, [1]))
    assert look_up(point, [1], leaf.keying, leaf.shard, Timestamp(1), patient=True) is None


def test_equality_of_python_must_be_that_of_sql():
    assert point_of(queried({6: Late(0)}, [0])) is None
    assert point_of(queried({0: Late(0)}, [6])) is not None
    assert point_of(queried({}, [0])) is None
