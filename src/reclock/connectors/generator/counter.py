"""``LOAD GENERATOR COUNTER``: 1, 2, 3, …, of which only the last so many may stay.

Event n adds the number n + 1; with ``max_cardinality`` m it also takes away n + 1 − m, so
that the relation holds the last m numbers: a collection that changes for ever and does not
grow. Tests: tests/connectors/generator/test_counter.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reclock.connectors.generator.model import Column, Rows, inserted
from reclock.sql.types import BIGINT


@dataclass(frozen=True, slots=True)
class Counter:
    """The numbers; all of them without ``max_cardinality``."""

    max_cardinality: int | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """One column."""
        return (Column("counter", BIGINT),)

    def before(self, offset: int) -> int:
        """Return ``offset``: every event has a row."""
        return offset

    def rows(self, first: int, last: int) -> Rows:
        """Return the numbers that come and those that go.

        >>> Counter(2).rows(1, 4).columns[0].to_pylist()
        [2, 3, 1, 4, 2]
        """
        events = np.arange(first, last, dtype=np.int64)
        if self.max_cardinality is None:
            return Rows(events, (pa.array(events + 1),), inserted(len(events)))
        offsets = np.repeat(events, 2)
        diffs = np.tile(np.array([1, -1], np.int64), len(events))
        values = offsets + 1 - np.where(diffs < 0, self.max_cardinality, 0)
        there = values >= 1
        return Rows(offsets[there], (pa.array(values[there]),), diffs[there])
