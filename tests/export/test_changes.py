"""The changes of a sink come in pieces of whole times, however they lie in runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reclock.export import changes


def batch(times):
    one = pa.array(np.ones(len(times), np.int64))
    return pa.RecordBatch.from_arrays(
        [one, pa.array(times, pa.int64()), one], ["kh", "time", "diff"]
    )


@given(st.lists(st.lists(st.integers(1, 6), min_size=1), min_size=1, max_size=4), st.data())
def test_pieces_are_whole_times_in_order(lists, data):
    most = data.draw(st.integers(1, 20))
    known, changes.PIECE_ROWS = changes.PIECE_ROWS, most
    try:
        pieces = [
            [time for part in piece for time in part["time"].to_pylist()]
            for piece in changes._pieces([batch(times) for times in lists])
        ]
    finally:
        changes.PIECE_ROWS = known
    assert sorted(t for piece in pieces for t in piece) == sorted(t for x in lists for t in x)
    for one, other in pairwise(pieces):
        assert max(one) < min(other), "a time is in two pieces"
        first = [t for t in other if t == min(other)]
        assert len(one) + len(first) > most, "a piece is smaller than need be"
    for piece in pieces:
        assert len(piece) <= most or len(set(piece)) == 1
