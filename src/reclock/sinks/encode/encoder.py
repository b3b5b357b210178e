"""The protocol of encoders: the changes of closed timestamps in, messages out.

Definition. Given all updates of the times in ``[lower, upper)``, consolidated (each row once per
time, no zeros), an encoder says how many messages each time has, and makes them: times
ascending, and of one key at one time what takes away before what adds. Messages are a function
of the updates, so an encoding may be made again and is the same.

What cannot be said in an envelope (two rows for one upsert key) is a ``Fault``: reported apart from
the output, which stays consistent without it (P9). Nothing else about data can fail.

Columns have positions, not names: an encoder knows the names, the delta does not. Rows are
written in chunks, while the client already sends the ones before, so memory for text is
bounded. Cost: vectorised; no Python per row.

Tests: tests/sinks/encode/test_envelopes.py; the texts: tests/sinks/encode/test_json_text.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.sinks.log import Messages
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

    Indices = NDArray[np.int64]
    """Rows by position; −1 for none."""

CHUNK: Final = 16_384
"""How many messages are written at a time."""


class Fault(NamedTuple):
    """Something about the data of a time that the envelope cannot say."""

    time: int
    code: str
    message: str
    detail: str


class Encoded(Protocol):
    """The messages of some times; ``chunks`` may be asked for again."""

    @property
    def times(self) -> Sequence[tuple[int, int]]:
        """The times that have messages, ascending, each with how many."""
        ...

    @property
    def faults(self) -> Sequence[Fault]:
        """What could not be said."""
        ...

    def chunks(self) -> Iterator[Messages]:
        """Yield the messages in order."""
        ...


class Nothing:
    """No messages."""

    times: Sequence[tuple[int, int]] = ()
    faults: Sequence[Fault] = ()

    def chunks(self) -> Iterator[Messages]:
        """Yield nothing."""
        return iter(())


class Encoder(Protocol):
    """From changes to messages."""

    def encode(
        self, updates: pa.RecordBatch | None, description: Description[Timestamp]
    ) -> Encoded:
        """Return the messages of all updates with times in ``[lower, upper)``; None for none."""
        ...


class Format(Protocol):
    """How rows become bytes."""

    def keys(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the key of each row, of its key columns."""
        ...

    def rows(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return each row as a value."""
        ...

    def changes(
        self, before: Sequence[pa.Array], after: Sequence[pa.Array], which: Which
    ) -> pa.Array:
        """Return each pair of rows, of which one may be missing, as a value."""
        ...


class Which(NamedTuple):
    """Which of the rows before and after are there, as booleans."""

    before: NDArray[np.bool_]
    after: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Updates:
    """A delta taken apart: the user's columns, times, diffs; sorted by time."""

    columns: tuple[pa.Array, ...]
    times: NDArray[np.int64]
    diffs: NDArray[np.int64]

    @classmethod
    def of(cls, delta: pa.RecordBatch) -> Updates:
        """Return the updates of a delta, sorted by time if they are not."""
        times = delta.column(delta.num_columns - 2).to_numpy()
        if (np.diff(times) < 0).any():
            delta = delta.take(np.argsort(times, kind="stable"))
        *columns, time, diff = delta.columns
        return cls(tuple(columns), time.to_numpy(), diff.to_numpy())

    def __len__(self) -> int:
        return len(self.times)


def taken(columns: Sequence[pa.Array], rows: Indices) -> list[pa.Array]:
    """Return some rows of the columns; NULLs for −1. Consecutive rows are not copied."""
    count = len(rows)
    if count and rows[0] >= 0 and rows[-1] - rows[0] == count - 1 and (np.diff(rows) == 1).all():
        return [column.slice(int(rows[0]), count) for column in columns]
    places = pa.array(rows, mask=rows < 0)
    return [column.take(places) for column in columns]


def counted(times: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Return each of the ascending times with how often it occurs.

    >>> counted(np.array([3, 3, 7]))
    ((3, 2), (7, 1))
    """
    found, counts = np.unique(times, return_counts=True)
    return tuple(zip(found.tolist(), counts.tolist(), strict=True))
