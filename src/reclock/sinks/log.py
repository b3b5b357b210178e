"""The transactional log, as types that allow no wrong order of calls.

::

    Unfenced ──fence()──▶ Fenced ──progress()──▶ where the sink was left
                            │    ──is_emptied()─▶ whether that may be lost
                            │    ──last_time()──▶ and what the data still says
                            │    ──records()────▶ all of the data
                            │
                            └──send(chunks, records)──▶ committed, all of it or nothing

Progress read before fencing means nothing: an older instance, thought dead, may commit a
moment later. So the only thing to do with an ``Unfenced`` producer is to fence, which ends the
transactions of every older instance and bars them for ever; progress and ``send`` are methods
of what ``fence`` returns, and of nothing else.

``send`` is one Kafka transaction: the data messages, in order, then the records of the consistency
topic. It returns when they are committed. If it cannot, it raises exactly one of ``failure``'s
``Retry`` (aborted, the same producer goes on), ``NewProducer`` (the outcome is unknown: fence again
and read progress) and ``Stop``; any other exception leaves the outcome unknown too.

Messages are columns, not objects: a chunk has the keys and the values of some thousands, and
their times, which never descend from one message to the next. Keeps P4.

Tests: tests/sinks/test_producer.py, on a real broker and in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from reclock.sinks.consistency import FrontierRecord, Record

TIMESTAMP_HEADER: Final = "reclock-timestamp"
"""The header of every data message: its time in decimal digits."""


class Message(NamedTuple):
    """One data message; without a value it is a tombstone."""

    time: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, eq=False, slots=True)
class Messages:
    """Consecutive data messages as columns; iterate over it for one at a time.

    ``keys`` is None if no message has a key. ``times`` never descends.
    """

    times: NDArray[np.int64]
    keys: pa.Array | None
    values: pa.Array

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[Message]:
        for time, part in self.runs():
            keys = [None] * len(part) if part.keys is None else part.keys.to_pylist()
            for key, value in zip(keys, part.values.to_pylist(), strict=True):
                yield Message(time, key, value)

    def runs(self) -> Iterator[tuple[int, Messages]]:
        """Yield each time with its messages."""
        starts = np.flatnonzero(np.diff(self.times, prepend=self.times[:1] - 1))
        for start, stop in zip(starts, [*starts[1:], len(self)], strict=True):
            keys = None if self.keys is None else self.keys[start:stop]
            yield (
                int(self.times[start]),
                Messages(self.times[start:stop], keys, self.values[start:stop]),
            )


class Fenced(Protocol):
    """The one producer of a sink: every older instance is barred."""

    def progress(self) -> FrontierRecord | None:
        """Return the last committed frontier of this sink; None if it never committed one."""
        ...

    def is_emptied(self) -> bool:
        """Return whether records of the consistency topic are gone, maybe this sink's."""
        ...

    def last_time(self) -> int | None:
        """Return the last time that has a committed message; None if none ever had one."""
        ...

    def records(self) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yield the committed messages of all partitions, each with its time (``written``)."""
        ...

    def send(self, chunks: Iterable[Messages], records: Sequence[Record]) -> None:
        """Commit messages and records in one transaction; nothing to commit, no transaction."""
        ...

    def close(self) -> None:
        """Give the connection back; an open transaction is left to be fenced or to time out."""
        ...


class Unfenced(Protocol):
    """A producer that may do nothing yet but become the one."""

    def fence(self) -> Fenced:
        """Bar all older instances, end their transactions, and return the only one left."""
        ...
