"""Explode a column of lists into rows: unnest, generate_series, LATERAL of both.

Rule. Linear: an update of a row with a list of n elements becomes n updates with its time
and diff, one per element; NULL and the empty list become none. Spark computes the list,
this explodes it. ::

    columns of the result = those of the input without the list, the element[, ordinality]

Ordinality counts from 1. A map is the list of its entries. Cost: the rows that come out.

Tests: tests/dataflow/test_flatmap.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import as_list, list_lengths
from reclock.dataflow import delta as deltas

if TYPE_CHECKING:
    from reclock.arrangement.layout import Int64s


def explode(delta: pa.RecordBatch, column: int, *, ordinality: bool = False) -> pa.RecordBatch:
    """Return one update per element of the list in ``column``.

    >>> lists = pa.array([[7, 8], None])
    >>> d = deltas.build([lists], np.array([3, 3]), np.array([1, 1]))
    >>> explode(d, 0, ordinality=True).to_pydict()
    {'c0': [7, 8], 'c1': [1, 2], 'time': [3, 3], 'diff': [1, 1]}
    """
    lists = as_list(delta.column(column))
    lengths = list_lengths(lists)
    parent = np.repeat(np.arange(len(lengths)), lengths)
    # Not the lists: each would be there once for every element of it.
    others = [at for at in range(delta.num_columns) if at != column]
    taken = delta.select(others).take(pa.array(parent))
    made = [*deltas.rows_of(taken), lists.flatten()]
    if ordinality:
        made.append(pa.array(_positions(lengths)))
    return deltas.build(made, *taken.columns[-2:])


def _positions(lengths: Int64s) -> Int64s:
    """Return 1, 2, … for each list, one after the other."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(1, lengths.sum() + 1) - np.repeat(starts, lengths)
