"""ENVELOPE UPSERT: the row that a key has now, or a tombstone when it has none.

One message for each key that changes at a time::

    a row is added          key, the row
    rows are only taken     key, no value

The key must be unique in the view: proven, or promised by NOT ENFORCED. Two rows added for one
key at one time break it. Then one of them is written, always the same one, and a fault says
which key: the topic is never half a change, and nobody is told nothing.

Tests: tests/sinks/encode/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.sinks.encode.encoder import CHUNK, Fault, Nothing, Updates, counted, taken
from reclock.sinks.encode.groups import Groups, grouped
from reclock.sinks.log import Messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.sinks.encode.encoder import Encoded, Format, Indices
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

DUPLICATE_KEY: Final = "23505"
_SHOWN: Final = 200
_MOST_FAULTS: Final = 100


@dataclass(frozen=True, slots=True)
class UpsertEncoder:
    """Rows by the key columns at ``key``."""

    format: Format
    key: tuple[int, ...]

    def encode(
        self, updates: pa.RecordBatch | None, description: Description[Timestamp]
    ) -> Encoded:
        """Return the messages of all updates with times in ``[lower, upper)``; None for none."""
        del description
        if updates is None:
            return Nothing()
        found = Updates.of(updates)
        keys = self.format.keys([found.columns[at] for at in self.key])
        groups = grouped(found, keys)
        rows = groups.rows[groups.starts + groups.taken * (groups.added > 0)]
        faults = _faults(found, keys, groups)
        return _Encoded(self.format, found, keys, rows, groups.added > 0, faults)


@dataclass(frozen=True, slots=True)
class _Encoded:
    format: Format
    updates: Updates
    keys: pa.Array
    rows: Indices
    added: np.ndarray[tuple[int], np.dtype[np.bool_]]
    faults: Sequence[Fault]

    @property
    def times(self) -> Sequence[tuple[int, int]]:
        """The times that have messages, ascending, each with how many."""
        return counted(self.updates.times[self.rows])

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order."""
        for start in range(0, len(self.rows), CHUNK):
            rows, added = self.rows[start : start + CHUNK], self.added[start : start + CHUNK]
            (keys,) = taken([self.keys], rows)
            yield Messages(self.updates.times[rows], keys, self._values(rows, added))

    def _values(self, rows: Indices, added: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
        if added.all():
            return self.format.rows(taken(self.updates.columns, rows))
        written = self.format.rows(taken(self.updates.columns, rows[added]))
        places = np.cumsum(added) - 1
        return written.take(pa.array(places, mask=~added))


def _faults(updates: Updates, keys: pa.Array, groups: Groups) -> tuple[Fault, ...]:
    """Return one fault for each key with more than one row, up to a limit."""
    broken = np.flatnonzero(groups.added > 1)[:_MOST_FAULTS]
    message = "two rows for one key at one time"
    made = []
    for group in broken.tolist():
        row = int(groups.rows[groups.starts[group]])
        key = bytes(keys[row].as_py()).decode(errors="backslashreplace")[:_SHOWN]
        detail = f"key {key} has {groups.added[group]} new rows; one of them was written"
        made.append(Fault(int(updates.times[row]), DUPLICATE_KEY, message, detail))
    return tuple(made)
