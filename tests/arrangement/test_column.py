from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from reclock.arrangement.column import canonical, is_storable, validity, words
from strategies.arrangements import TYPES


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(k) for k, _ in TYPES])
def test_every_type_survives_canonical_form(kind, values):
    assert is_storable(kind)
    column = pa.array(values, kind)
    once = canonical(column)
    assert once.type == kind
    assert len(once) == len(values)
    assert once.is_null().to_pylist() == column.is_null().to_pylist()
    assert repr(canonical(once).to_pylist()) == repr(once.to_pylist())


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(k) for k, _ in TYPES])
def test_a_slice_is_the_same_as_a_copy(kind, values):
    sliced = pa.array(values * 3, kind)[len(values) : 2 * len(values)]
    assert repr(canonical(sliced).to_pylist()) == repr(
        canonical(pa.array(values, kind)).to_pylist()
    )


def test_there_is_one_nan_and_one_zero():
    strange_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0123))[0]
    column = canonical(pa.array([-0.0, strange_nan, 0.0, float("nan")]))
    bits = words(column)[:, 0]
    assert bits[0] == bits[2] == 0
    assert bits[1] == bits[3]


def test_floats_inside_lists_structs_and_maps_are_canonical():
    kind = pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.float32()))]))
    (row,) = canonical(pa.array([[{"x": [("k", -0.0)]}]], kind)).to_pylist()
    assert str(row) == "[{'x': [('k', 0.0)]}]"


def test_what_lies_under_null_does_not_show():
    left = pa.array(np.array([1, 2, 3]), mask=np.array([False, True, False]))
    right = pa.array(np.array([1, 9, 3]), mask=np.array([False, True, False]))
    assert np.array_equal(words(left), words(right))
    assert validity(left).tolist() == [True, False, True]
    assert validity(pa.array([1])) is None


def test_decimals_are_two_words():
    assert words(pa.array([2**64 + 5], pa.decimal128(30, 0))).tolist() == [[5, 1]]


@pytest.mark.parametrize(
    "kind",
    [
        pa.dictionary(pa.int8(), pa.string()),
        pa.string_view(),
        pa.list_(pa.binary_view()),
        pa.run_end_encoded(pa.int32(), pa.int64()),
    ],
)
def test_encodings_are_not_types_to_store(kind):
    assert not is_storable(kind)
