"""Common parts of the envelopes with state: the order of records, and what is stored.

A trace answers with updates as stored, of which some cancel. ``stored`` leaves, for each key,
the rows that it has now, each once with its count. Cost: the updates found.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import diff_of, kh_of

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.arrangement.layout import Int64s, Layout
    from reclock.arrangement.probe import Matches


_LAST: Final = (1 << 63) - 1


def in_order(order: pa.Array) -> Int64s:
    """Return the places of records by their order; equal ones in the order they have.

    What is no record, an error of the source itself, has none, and comes last.

    >>> import pyarrow as pa
    >>> in_order(pa.array([7, 5, 7])).tolist(), in_order(pa.array([7, None, 5])).tolist()
    ([1, 0, 2], [2, 0, 1])
    """
    numbers = order.fill_null(_LAST).to_numpy()
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    return np.argsort(numbers, kind="stable")


def stored(layout: Layout, found: Matches) -> tuple[Int64s, pa.RecordBatch]:
    """Return the number of the key of each row, in order, and the rows, with their counts."""
    # With the number of the key in the place of its hash, each is consolidated by itself.
    zeros = np.zeros(len(found.probe), np.int64)
    numbered = layout.batch(found.probe, layout.rows(found.updates), zeros, diff_of(found.updates))
    there = consolidate(layout, numbered)
    return kh_of(there), there
