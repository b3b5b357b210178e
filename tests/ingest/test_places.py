"""Places that are taken, few or many, near or far apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.ingest.transactions import places as module
from reclock.ingest.transactions.places import Places

near = st.lists(st.integers(0, 40), unique=True)
far = st.lists(st.integers(-(2**40), 2**40), unique=True)
more = st.lists(st.integers(0, 40) | near | far, max_size=8)


@settings(max_examples=200)
@given(more, st.sampled_from([0, 3, 64]))
def test_places_are_a_set(given, few):
    known, places = set(), Places()
    old, module.FEW = module.FEW, few
    try:
        for some in given:
            if isinstance(some, int):
                assert places.add(some) == (some not in known)
                known.add(some)
            else:
                found = places.add_all(np.array(some, np.int64))
                assert found.tolist() == [place not in known for place in some]
                known |= {*some}
            if known:
                assert (places.first, places.last) == (min(known), max(known))
    finally:
        module.FEW = old
