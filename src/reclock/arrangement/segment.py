"""A segment: one file with the runs of many operators and shards.

A tick must not write a file per operator and shard. A task writes all its runs into one
segment, with one fsync of the file and one of the directory; runs small enough go inline
into their references, so a small tick may write no file at all, and an idle one never
does. ::

    <run> <padding to 64>… <index: JSON> <u32 CRC of index> <u32 size of index> SEG1

Every run is readable from its reference alone. The index repeats the references, for
people and tools that have lost the manifest.

Name. The caller gives a *stem*, such as ``tick-17.task-0``; the file is called
``<stem>-<digest of the index>.seg``. The index holds the checksums of all runs, so the
same content always gets the same name, and different content never does: a retried task
replaces a file by itself, and no late task of a dead process can overwrite what a manifest
names.

Tests: tests/arrangement/test_segment.py.
"""

from __future__ import annotations

import json
import os
import struct
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Final, Self
from zlib import crc32

from reclock.arrangement.run import Encoder, RunRef
from reclock.arrangement.store import check_name, storage_errors
from reclock.arrangement.stream import recut
from reclock.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.store import Store
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

SUFFIX: Final = ".seg"
BATCH_ROWS: Final = 1 << 20
BATCH_BYTES: Final = 128 << 20
DEALT_ROWS: Final = 1 << 17
"""So many rows at most a batch has of a run that is dealt out to tasks."""
STEADY_BYTES: Final = 1 << 20
"""After so many bytes what is written steadily is made durable."""

_ALIGNMENT: Final = 64
_MAGIC: Final = b"SEG1"
_TAIL: Final = struct.Struct("<II4s")


class SegmentWriter(AbstractContextManager["SegmentWriter"]):
    """Collect runs, then publish them as one file: ``add`` any number, ``finish`` once.

    Leaving the block without ``finish`` removes what was written. Runs of at most ``inline_limit``
    bytes travel in their references. Runs without rows take no bytes. With ``steadily``, bytes go
    to the disk bit by bit, so that other writers need not wait for all of them. What is not
    ``durable`` may be gone after a crash of the machine.
    """

    def __init__(
        self,
        store: Store,
        stem: str,
        *,
        inline_limit: int = 0,
        steadily: bool = False,
        durable: bool = True,
    ) -> None:
        self._store = store
        self._stem = check_name(stem)
        self._inline_limit = inline_limit
        self._steadily = steadily
        self._durable = durable
        self._unsynced = 0
        self._refs: list[RunRef] = []
        self._path: Path | None = None
        self._file: IO[bytes] | None = None
        self._offset = 0

    def add(
        self,
        name: str,
        layout: Layout,
        batches: Iterable[pa.RecordBatch],
        description: Description[Timestamp],
        *,
        batch_rows: int = BATCH_ROWS,
        dealt: bool = False,
    ) -> None:
        """Write a run: consolidated batches that follow one another, cut to ``batch_rows``.

        On a store that is read by pieces they are cut finer: a reader of few keys pays for all of
        the batches that those are in. So are those of a run that is ``dealt`` out to tasks, each a
        range of hashes: a task reads and checks all batches that reach into its range. A look-up
        pays a hundredth of a millisecond for each batch.
        """
        encoder = Encoder(layout)
        batch_rows = max(1, batch_rows // self._store.batch_share)
        if dealt:
            batch_rows = min(batch_rows, DEALT_ROWS)
        waiting: list[pa.Buffer] = []
        start: int | None = None
        for piece in encoder.encode(recut(batches, batch_rows)):
            waiting.append(piece)
            del piece  # large: not kept while the next one is made
            if start is None and encoder.length > self._inline_limit and encoder.rows:
                start = self._begin_run()
            if start is not None:
                self._write(waiting)
                waiting = []
        ref = RunRef(
            name, description, encoder.rows, encoder.length, encoder.checksum, adds=encoder.adds
        )
        if encoder.rows == 0:
            ref = replace(ref, length=0, checksum=0)
        elif start is None:
            ref = replace(ref, inline=b"".join(map(bytes, waiting)))
        else:
            ref = replace(ref, segment=self._stem, offset=start)
        self._refs.append(ref)

    def finish(self) -> tuple[RunRef, ...]:
        """Make the runs durable and return their references, in the order added."""
        if self._file is None or self._path is None:
            return tuple(self._refs)
        stored = [ref.to_json() for ref in self._refs if ref.segment is not None]
        index = json.dumps({"v": 1, "runs": stored}, separators=(",", ":")).encode()
        self._write([index, _TAIL.pack(crc32(index), len(index), _MAGIC)])
        name = f"{self._stem}-{blake2b(index, digest_size=8).hexdigest()}{SUFFIX}"
        with storage_errors("write", name):
            self._file.close()
        self._store.publish(self._path, name, durable=self._durable)
        self._file = self._path = None
        return tuple(ref if ref.segment is None else replace(ref, segment=name)
                     for ref in self._refs)  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self._path is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    def _begin_run(self) -> int:
        """Pad to the alignment, opening the file for its first run; return the offset."""
        if self._file is None:
            self._path = self._store.scratch(self._stem)
            self._file = self._path.open("wb")
        self._write([b"\0" * (-self._offset % _ALIGNMENT)])
        return self._offset

    def _write(self, pieces: Iterable[pa.Buffer | bytes]) -> None:
        assert self._file is not None
        with storage_errors("write", self._stem):
            for piece in pieces:
                self._file.write(piece)
                self._offset += len(piece)
                self._unsynced += len(piece)
            if self._steadily and self._unsynced > STEADY_BYTES:
                self._file.flush()
                os.fdatasync(self._file.fileno())
                self._unsynced = 0


def rows_per_batch(rows: int, size: int) -> int:
    """Return how many rows of ``size`` bytes in all to put into one batch.

    Few batches make probes cheap; Arrow's strings must stay below 2 GiB a batch.

    >>> rows_per_batch(1_000_000, 60_000_000), rows_per_batch(1_000, 1_000_000_000)
    (1048576, 134)
    """
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))


def stem_of(name: str) -> str:
    """Return the stem of a segment, or of a file that was to become one.

    >>> stem_of("tick-17.task-0-0123456789abcdef.seg"), stem_of(".tick-17.task-0~x1.tmp")
    ('tick-17.task-0', 'tick-17.task-0')
    """
    if name.endswith(SUFFIX):
        return name.removesuffix(SUFFIX).rpartition("-")[0]
    return os.path.splitext(name)[0].removeprefix(".").rpartition("~")[0] or name


def read_index(store: Store, name: str) -> tuple[RunRef, ...]:
    """Return the references of the runs in a segment, from its own index."""
    data = store.file(name).whole()
    if len(data) >= _TAIL.size:
        checksum, size, magic = _TAIL.unpack(data.slice(len(data) - _TAIL.size))
        start = len(data) - _TAIL.size - size
        if magic == _MAGIC and start >= 0 and crc32(data.slice(start, size)) == checksum:
            runs = json.loads(data.slice(start, size).to_pybytes())["runs"]
            return tuple(replace(RunRef.from_json(run), segment=name) for run in runs)
    message = f"corrupt index of segment {name}"
    raise Corrupt(message, detail=f"{len(data)} bytes")
