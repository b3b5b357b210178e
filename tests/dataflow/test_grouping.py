"""Groups, segments and running sums, with colliding hashes too."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.delta import key_hash
from reclock.dataflow.grouping import counted, group, running
from reclock.errors import InvalidValue

updates = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 3), st.integers(-3, 3)),
    max_size=15,
)


@given(updates, st.sampled_from([1, 2, 1 << 62]))
def test_segments_are_the_updates_of_a_key_and_time(
    some: list[tuple[Any, int, int]], hashes: int
) -> None:
    keys = pa.array([key for key, _, _ in some], pa.string())
    time = np.array([t for _, t, _ in some], np.int64)
    diff = np.array([d for _, _, d in some], np.int64)
    kh = key_hash([keys], len(some)) % hashes
    groups = group(kh, [keys], time)
    sums = np.add.reduceat(diff[groups.order], groups.segments) if some else diff
    base = np.arange(len(groups.groups)) * 100
    after = running(sums, groups.groups, base)
    expected: defaultdict[Any, int] = defaultdict(int)
    for key, t, d in some:
        expected[key, t] += d
    seen = {}
    for segment, row in enumerate(groups.segment_rows.tolist()):
        key, t, _ = some[row]
        assert (key, t) not in seen
        seen[key, t] = sums[segment]
        owner = groups.group_of[segment]
        assert some[groups.first_rows[owner]][0] == key
        so_far = sum(d for (k, at), d in expected.items() if k == key and at <= t)
        assert after[segment] == base[owner] + so_far
        last = max(at for k, at, _ in some if k == key)
        assert some[groups.segment_rows[groups.last_segments[owner]]][1] == last
        assert groups.is_first[segment] == (t == min(at for k, at, _ in some if k == key))
    assert seen == expected
    assert len(groups.groups) == len({key for key, _, _ in some})


def test_sums_that_might_not_fit_are_refused() -> None:
    assert counted(np.array([1, 1]), np.array([2, 3]), 3).tolist() == [0, 5, 0]
    with pytest.raises(InvalidValue, match="out of range"):
        counted(np.array([0, 0]), np.array([2**62, 2**62]), 1)
