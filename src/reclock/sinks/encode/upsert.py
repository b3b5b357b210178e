"""ENVELOPE UPSERT: the row that a key has now, or a tombstone when it has none.

One message for each key that changes at a time::

    a row is added          key, the row
    rows are only taken     key, no value

This is for keys that are proven to be unique in the view; those that are only promised to be are
``shadow``'s. Should two rows be added for one key at one time all the same, one of them is written,
always the same one, and a fault names the key.

Tests: tests/sinks/encode/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.sinks.encode.encoder import CHUNK, Fault, Nothing, Updates, counted, taken
from reclock.sinks.encode.groups import grouped
from reclock.sinks.log import Messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.sinks.encode.encoder import Encoded, Format, Indices
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

DUPLICATE_KEY: Final = "23505"
MOST_FAULTS: Final = 100
_SHOWN: Final = 200


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
        added = groups.added > 0
        rows = groups.rows[groups.starts + groups.taken * added]
        times = found.times[rows]
        broken = np.flatnonzero(groups.added > 1)
        faults = duplicates(
            (int(times[at]), keys[int(rows[at])], int(groups.added[at])) for at in broken
        )
        return Upserts(self.format, found.columns, keys, times, rows, added, faults)


@dataclass(frozen=True, eq=False, slots=True)
class Upserts:
    """Messages: at ``times``, of the keys of ``rows``, with those rows where they are ``added``."""

    format: Format
    columns: Sequence[pa.Array]
    keys: pa.Array
    moments: NDArray[np.int64]
    rows: Indices
    added: NDArray[np.bool_]
    faults: Sequence[Fault]

    @property
    def times(self) -> Sequence[tuple[int, int]]:
        """The times that have messages, ascending, each with how many."""
        return counted(self.moments)

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order."""
        for start in range(0, len(self.rows), CHUNK):
            part = slice(start, start + CHUNK)
            (keys,) = taken([self.keys], self.rows[part])
            values = self._values(self.rows[part], self.added[part])
            yield Messages(self.moments[part], keys, values)

    def _values(self, rows: Indices, added: NDArray[np.bool_]) -> pa.Array:
        if added.all():
            return self.format.rows(taken(self.columns, rows))
        written = self.format.rows(taken(self.columns, rows[added]))
        return written.take(pa.array(np.cumsum(added) - 1, mask=~added))


def duplicates(found: Iterable[tuple[int, pa.Scalar, int]]) -> tuple[Fault, ...]:
    """Return the faults of (time, key, how many rows it has), up to a limit."""
    message = "two rows for one key at one time"
    made: list[Fault] = []
    for time, key, count in found:
        if len(made) == MOST_FAULTS:
            break
        text = bytes(key.as_py()).decode(errors="backslashreplace")[:_SHOWN]
        detail = f"key {text} has {count} rows; one of them was written"
        made.append(Fault(time, DUPLICATE_KEY, message, detail))
    return tuple(made)
