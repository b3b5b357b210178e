"""COUNTER: every number once, and with a limit only the last so many."""

from __future__ import annotations

from collections import Counter as Multiset

from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.generator.counter import Counter


@given(st.integers(0, 60), st.none() | st.integers(1, 20))
def test_what_is_there_after_n_events(events: int, most: int | None) -> None:
    offsets, (values,), diffs = Counter(most).rows(0, events)
    there: Multiset[int] = Multiset()
    for value, diff in zip(values.to_pylist(), diffs.tolist(), strict=True):
        there[value] += diff
    kept = [value for value, count in there.items() if count]
    assert sorted(kept) == list(range(1, events + 1))[-(most or events + 1) :]
    assert set(there.values()) <= {0, 1}
    added = offsets[diffs > 0]
    assert added.tolist() == list(range(events))


def test_a_number_goes_when_its_successor_comes() -> None:
    offsets, (values,), diffs = Counter(1).rows(0, 3)
    assert list(zip(offsets.tolist(), values.to_pylist(), diffs.tolist(), strict=True)) == [
        (0, 1, 1), (1, 2, 1), (1, 1, -1), (2, 3, 1), (2, 2, -1),
    ]  # fmt: skip
