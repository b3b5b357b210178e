from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections import Counter, namedtuple
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.change.value import FrozenMap, canonical, sort_key
from reclock.errors import InvalidValue
from strategies.changes import rows, values

Point = namedtuple("Point", "x y")

SAME = [
    (float("nan"), -float("nan")),
    (Decimal("NaN"), Decimal("-sNaN")),
    (0.0, -0.0),
    (Decimal("1.10"), Decimal("1.1")),
    ([1, [float("nan")]], (1, (float("nan"),))),
    ({"a": 1, "b": [None]}, {"b": [None], "a": 1}),
    ({"a": float("nan")}, {"a": float("nan")}),
    (bytearray(b"x"), b"x"),
    ({1, 2}, frozenset({2, 1})),
    (Point(1, -0.0), (1, 0.0)),
    (
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ),
    (None, None),
]

DIFFERENT = [
    (None, 0),
    (None, float("nan")),
    (None, ""),
    ("1", 1),
    ("x", b"x"),
    ([1, 2], [2, 1]),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    ({"a": None}, {}),
    ([None], []),
    (0.1, Decimal("0.1")),
    (float("nan"), Decimal("NaN")),
    (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1)),  # noqa: DTZ001
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_same_group_key(a: object, b: object) -> None:
    assert Counter([canonical((a,)), canonical((b,))]) == {canonical((a,)): 2}
    assert sort_key(a) == sort_key(b)
    assert sort_key(a) == sort_key(canonical(b))


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_group_keys(a: object, b: object) -> None:
    assert canonical((a,)) != canonical((b,))
    assert sort_key(a) != sort_key(b)


@given(rows(values, values), rows(values, values))
def test_equality_hash_and_sort_key_agree(a: tuple[object, ...], b: tuple[object, ...]) -> None:
    same = sort_key(a) == sort_key(b)
    assert (canonical(a) == canonical(b)) is same
    assert (len({canonical(a), canonical(b)}) == 1) is same


@given(values)
def test_canonical_is_idempotent_and_keeps_the_sort_key(value: object) -> None:
    once = canonical(value)
    assert (canonical(once),) == (once,)
    assert sort_key(once) == sort_key(value)


@given(st.lists(values), st.randoms())
def test_sort_key_orders_everything_one_way(items: list[object], random: object) -> None:
    expected = sorted(map(sort_key, items))
    random.shuffle(items)  # type: ignore[attr-defined]
    assert sorted(map(sort_key, items)) == expected


def test_order_of_numbers_nan_and_null_is_postgresqls() -> None:
    ordered = [-math.inf, -1, Decimal("0.5"), 1.5, 10**400, math.inf, math.nan, None]
    shuffled = ordered[::-1]
    assert sorted(shuffled, key=sort_key) == ordered


def test_zero_has_one_sign() -> None:
    assert math.copysign(1, canonical((-0.0,))[0]) == 1


def test_booleans_and_numbers_meet_only_without_column_types() -> None:
    assert canonical((True,)) == canonical((1,))
    assert sort_key((True,)) != sort_key((1,))


def test_canonical_rows_still_read_like_rows() -> None:
    row = canonical((1, [2, 3], {"a": [4]}))
    assert (row[0], row[1][1], row[2]["a"][0]) == (1, 3, 4)


def test_other_hashable_values_are_themselves() -> None:
    a, b = UUID(int=1), UUID(int=2)
    assert canonical(a) is a
    assert sorted([b, a], key=sort_key) == [a, b]


def test_unhashable_objects_are_refused() -> None:
    class Mutable:
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(InvalidValue, match="type Mutable cannot be part of a row"):
        canonical([Mutable()])


def test_frozen_maps_are_keys_in_another_process_too() -> None:
    program = (
        "import pickle, sys; from reclock.change.value import FrozenMap; "
        "row = pickle.loads(sys.stdin.buffer.read()); "
        "assert row in {FrozenMap({'name': 'a'})}"
    )
    sent = pickle.dumps(FrozenMap({"name": "a"}))
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", program], input=sent, env=environment, check=True)


def test_frozen_map_equals_mappings_only() -> None:
    assert FrozenMap({"a": 1}) == {"a": 1}
    assert FrozenMap({"a": 1}) != (("a", 1),)
    assert hash(FrozenMap([("a", 1), ("b", 2)])) == hash(FrozenMap([("b", 2), ("a", 1)]))
