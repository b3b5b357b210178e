"""ENVELOPE DEBEZIUM: what was there before and what is there after.

::

    {"before": null, "after": {…}}     a row is added
    {"before": {…}, "after": null}     a row is taken away
    {"before": {…}, "after": {…}}      both, for one key at one time

With a key, the k-th row taken away of a key at a time is paired with the k-th one added, within
that time alone; what is left over stands for itself. Without a key nothing is paired, and of
each time what takes away comes first. A row that occurs n times is n messages.

Tests: tests/sinks/encode/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reclock.sinks.encode.encoder import CHUNK, Nothing, Updates, Which, counted, taken
from reclock.sinks.encode.groups import grouped
from reclock.sinks.log import Messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from reclock.sinks.encode.encoder import Encoded, Fault, Format, Indices
    from reclock.sinks.encode.groups import Groups
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class DebeziumEncoder:
    """Changes, by the key columns at ``key`` if there are any."""

    format: Format
    key: tuple[int, ...] = ()

    def encode(
        self, updates: pa.RecordBatch | None, description: Description[Timestamp]
    ) -> Encoded:
        """Return the messages of all updates with times in ``[lower, upper)``; None for none."""
        del description
        if updates is None:
            return Nothing()
        found = Updates.of(updates)
        keys = None
        if self.key:
            keys = self.format.keys([found.columns[at] for at in self.key])
        before, after = paired(grouped(found, keys))
        return _Encoded(self.format, found, keys, before, after)


def paired(groups: Groups) -> tuple[Indices, Indices]:
    """Return the rows before and after of each message; −1 for none."""
    if len(groups) == len(groups.rows):
        added = groups.added > 0
        return np.where(added, -1, groups.rows), np.where(added, groups.rows, -1)
    sizes = np.maximum(groups.taken, groups.added)
    group = np.repeat(np.arange(len(groups)), sizes)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    start, gone, come = groups.starts[group], groups.taken[group], groups.added[group]
    last = len(groups.rows) - 1
    before = groups.rows[np.minimum(start + rank, last)]
    after = groups.rows[np.minimum(start + gone + rank, last)]
    return np.where(rank < gone, before, -1), np.where(rank < come, after, -1)


@dataclass(frozen=True, slots=True)
class _Encoded:
    format: Format
    updates: Updates
    keys: pa.Array | None
    before: Indices
    after: Indices

    @property
    def faults(self) -> Sequence[Fault]:
        """Nothing: this envelope can say every change."""
        return ()

    @property
    def times(self) -> Sequence[tuple[int, int]]:
        """The times that have messages, ascending, each with how many."""
        return counted(self.updates.times[np.maximum(self.before, self.after)])

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order."""
        for start in range(0, len(self.before), CHUNK):
            before, after = self.before[start : start + CHUNK], self.after[start : start + CHUNK]
            some = np.where(before >= 0, before, after)
            keys = None if self.keys is None else taken([self.keys], some)[0]
            columns = self.updates.columns
            values = self.format.changes(
                taken(columns, before), taken(columns, after), Which(before >= 0, after >= 0)
            )
            yield Messages(self.updates.times[some], keys, values)
