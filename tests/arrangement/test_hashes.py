from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement import hashes
from reclock.arrangement.hashes import IN_CACHE, STRIDE, Hashes

numbers = st.integers(-30, 30) | st.sampled_from([-(2**63), 2**63 - 1])
many = st.lists(numbers, max_size=4 * STRIDE).map(lambda n: np.array(sorted(n), np.int64))


@pytest.mark.parametrize("in_cache", [0, IN_CACHE])
@given(stored=many, wanted=many)
def test_it_finds_what_searchsorted_finds(in_cache, stored, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashes, "IN_CACHE", in_cache)
        low, count = Hashes(stored).find(wanted)
    assert np.array_equal(low, np.searchsorted(stored, wanted, "left"))
    assert np.array_equal(low + count, np.searchsorted(stored, wanted, "right"))
