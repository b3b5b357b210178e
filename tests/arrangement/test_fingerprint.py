from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.arrangement.column import canonical as canonical_column
from reclock.arrangement.fingerprint import LONG, fingerprint, fingerprint_of_integers
from reclock.change.value import canonical
from strategies.arrangements import TYPES


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(k) for k, _ in TYPES])
def test_equal_values_have_equal_fingerprints_and_others_do_not(kind, values):
    prints = fingerprint([canonical_column(pa.array(values, kind))], len(values)).tolist()
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert (prints[i] == prints[j]) == (canonical((one,)) == canonical((other,)))


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(k) for k, _ in TYPES])
def test_it_does_not_depend_on_the_place(kind, values):
    whole = canonical_column(pa.array(values + values, kind))
    half = fingerprint([whole[len(values) :]], len(values))
    assert np.array_equal(half, fingerprint([whole], 2 * len(values))[: len(values)])


def test_strings_of_every_length_differ():
    texts = ["x" * n for n in range(3 * LONG)]
    assert len(set(fingerprint([pa.array(texts)], len(texts)).tolist())) == len(texts)


def test_a_million_rows_have_a_million_fingerprints():
    numbers = pa.array(np.arange(1_000_000))
    assert len(np.unique(fingerprint([numbers, numbers], 1_000_000))) == 1_000_000


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from([2, 4, 8]).flatmap(
            lambda w: st.tuples(
                st.integers(-(1 << (8 * w - 1)), (1 << (8 * w - 1)) - 1), st.just(w)
            )
        ),
        min_size=1,
        max_size=3,
    )
)
def test_one_row_of_whole_numbers_needs_no_arrays(row):
    kinds = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}
    columns = [pa.array([value], kinds[width]) for value, width in row]
    assert fingerprint_of_integers(row) == fingerprint(columns, 1)[0]


def test_the_function_never_changes():
    # Runs on disk are sorted by it: another result here needs another format version.
    columns = [pa.array([1, None]), pa.array(["reclock", "é" * LONG]), pa.array([[1], []])]
    assert fingerprint(columns, 2).tolist() == [16531558714157368067, 7751706759311214572]
