"""The content of a file, as a source needs it: how far it goes, and how to read it.

Two measures of a file::

    end   the position after its last whole record: what the remap binds
    raw   how many bytes of the file those records are in: what a fingerprint is taken of

For plain text they are the same number; of a compressed file ``end`` counts the bytes that
were compressed, and of a Parquet file its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BATCH_ROWS: Final = 1 << 16
BATCH_BYTES: Final = 8 << 20
PLACE: Final = (("part", pa.string()), ("offset", pa.int64()))
"""What every record has: its file, and its position there."""


class Measure(NamedTuple):
    """How far a file goes; ``memory`` is what its content wants to know next time."""

    end: int
    raw: int
    memory: object = None


class Stretch(NamedTuple):
    """Positions ``[start, stop)`` of the file ``name``; ``end`` if it is known to end there."""

    name: str
    start: int
    stop: int
    end: int | None = None


class Content(Protocol):
    """How files are read; a value that can be pickled."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        ...

    def measure(self, file: BinaryIO, name: str, size: int, known: Measure | None) -> Measure:
        """Return how far a file goes that may still grow; ``known`` is what it was before."""
        ...

    def measure_complete(self, file: BinaryIO, name: str, size: int) -> Measure:
        """Return how far a file goes that is complete; refuse one that cannot be."""
        ...

    def pieces(self, file: BinaryIO, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        """Yield the records that begin in a stretch, in pieces of bounded size."""
        ...

    def grain(self, name: str) -> int | None:
        """Return how many positions a record has, about; None: a stretch is found by all before."""
        ...


def bounded(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small pieces to batches of at most 65 536 rows and 8 MiB, if no piece has more."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in pieces:
        if rows + piece.num_rows > BATCH_ROWS or (rows and size + piece.nbytes > BATCH_BYTES):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        if piece.num_rows:
            waiting.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
    if waiting:
        yield pa.concat_batches(waiting)


def parts(name: str, count: int) -> pa.Array:
    """Return the column ``part`` of ``count`` records of a file."""
    return pa.repeat(pa.scalar(name, pa.string()), count)
