from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement.hashes import STRIDE, Hashes

numbers = st.integers(-30, 30) | st.sampled_from([-(2**63), 2**63 - 1])
many = st.lists(numbers, max_size=4 * STRIDE).map(lambda n: np.array(sorted(n), np.int64))


@given(many, many)
def test_it_finds_what_searchsorted_finds(stored, wanted):
    low, count = Hashes(stored).find(wanted)
    assert np.array_equal(low, np.searchsorted(stored, wanted, "left"))
    assert np.array_equal(low + count, np.searchsorted(stored, wanted, "right"))
