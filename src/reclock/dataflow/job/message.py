"""The messages between tasks of a job: a few cells of bytes, never rows.

A message goes to a part of the next stage, or to the driver after the last one. ``kind`` and
``name`` say what the bytes are::

    EXCHANGED  an arrangement, sorted by hash: Arrow batches of its layout
    ROWS       the delta of a step, for a later stage of the same part
    ANSWERS    what Spark computed of the groups of a step
    FINISHED   a run that was written: its reference as JSON
    COUNTED    how many updates a limit left out: a number
    SENT       how many bytes a task sent to others: a number, from every task
    TOOK       what each step of a task took: nanoseconds by step, as JSON

``source`` and ``nth`` order the messages of one name, whatever the shuffle does. Bytes are cut
at ``BLOB_BYTES``, far below what a cell may hold.

Cost: rows are copied once, when they are packed; large bytes are a cell of a batch, and rows of a
received one, as they are. Tests: tests/dataflow/test_message.py.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import kh_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reclock.dataflow.job.parts import Parts

EXCHANGED: Final = 0
ROWS: Final = 1
ANSWERS: Final = 2
FINISHED: Final = 3
COUNTED: Final = 4
SENT: Final = 5
TOOK: Final = 6

BLOB_BYTES: Final = 8 << 20
ALONE_BYTES: Final = 1 << 20
"""A message of so many bytes is an Arrow batch by itself; of others a batch has no more."""

_END_BYTES: Final = 8
"""What ends a stream of Arrow."""

COLUMNS: Final = ("target", "source", "nth", "kind", "name", "blob")
SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, pa.int32()) for name in COLUMNS[:4]),
        pa.field("name", pa.string()),
        pa.field("blob", pa.binary()),
    ]
)
DDL: Final = "target INT, source INT, nth INT, kind INT, name STRING, blob BINARY"


Bytes: TypeAlias = bytes | pa.Buffer


class Message(NamedTuple):
    """Bytes for one part; see the head of this module."""

    target: int
    source: int
    nth: int
    kind: int
    name: str
    blob: Bytes


class Outbox:
    """Collects the messages of one task."""

    def __init__(self, part: int, parts: Parts) -> None:
        self._part = part
        self._parts = parts
        self._nth = 0
        self.messages: list[Message] = []

    def put(self, kind: int, name: str, blob: Bytes, target: int | None = None) -> None:
        """Send bytes to a part; by default to this part's next stage."""
        to = self._part if target is None else target
        self.messages.append(Message(to, self._part, self._nth, kind, name, blob))
        self._nth += 1

    def rows(self, kind: int, name: str, batch: pa.RecordBatch, target: int | None = None) -> None:
        """Send rows, in pieces that fit into cells."""
        for piece in pieces(batch):
            self.put(kind, name, packed(piece), target)

    def exchange(self, name: str, updates: pa.RecordBatch) -> None:
        """Send updates that are sorted by hash to the parts that have their ranges."""
        for target, some in split(updates, self._parts):
            self.rows(EXCHANGED, name, some, target)

    def count(self) -> None:
        """Say at the end of a task what it has sent: all of its messages go through a shuffle."""
        size = sum(len(message.blob) for message in self.messages)
        self.put(SENT, "", str(size).encode())

    def forward(self, messages: Iterable[Message]) -> None:
        """Send messages on to the next stage of this part, as they are."""
        self.messages += [m._replace(target=self._part) for m in messages]


class Inbox:
    """The messages that a task got."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], list[Message]] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Take the messages of a batch; what other rows it has, is not for it."""
        columns = [batch.column(batch.schema.get_field_index(name)) for name in COLUMNS]
        if columns[3].null_count:
            there = columns[3].is_valid()
            columns = [column.filter(there) for column in columns]
        *places, blobs = columns
        for row in zip(*(c.to_pylist() for c in places), cells(blobs), strict=True):
            message = Message(*row)
            self._found.setdefault((message.kind, message.name), []).append(message)

    def add(self, messages: Iterable[Message]) -> None:
        """Take messages that did not travel."""
        for message in messages:
            self._found.setdefault((message.kind, message.name), []).append(message)

    def batches(self, kind: int, name: str) -> list[pa.RecordBatch]:
        """Return the rows of one name, in the order in which they were sent."""
        found = sorted(self._found.get((kind, name), ()), key=_order)
        return [batch for message in found for batch in unpacked(message.blob)]

    def chosen(self, wanted: Callable[[int, str], bool]) -> Iterator[Message]:
        """Yield the messages whose kind and name are wanted."""
        for (kind, name), messages in self._found.items():
            if wanted(kind, name):
                yield from messages

    def __iter__(self) -> Iterator[Message]:
        for messages in self._found.values():
            yield from messages


def _order(message: Message) -> tuple[int, int]:
    return message.source, message.nth


def split(updates: pa.RecordBatch, parts: Parts) -> list[tuple[int, pa.RecordBatch]]:
    """Return the updates of each part that has some; they are sorted by hash."""
    if parts.count == 1:
        return [(0, updates)] if updates.num_rows else []
    begins = np.searchsorted(kh_of(updates), parts.firsts, "left")
    ends = [*begins[1:].tolist(), updates.num_rows]
    return [
        (part, updates.slice(begin, end - begin))
        for part, (begin, end) in enumerate(zip(begins.tolist(), ends, strict=True))
        if begin < end
    ]


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of at most ``BLOB_BYTES``, about."""
    count = max(1, -(-batch.nbytes // BLOB_BYTES))
    size = -(-batch.num_rows // count)
    for start in range(0, batch.num_rows, max(1, size)):
        yield batch.slice(start, size)


def packed(batch: pa.RecordBatch) -> pa.Buffer:
    """Return a batch with its schema as bytes."""
    head: int = batch.schema.serialize().size
    made = pa.allocate_buffer(head + pa.ipc.get_record_batch_size(batch) + _END_BYTES)
    with pa.ipc.new_stream(pa.FixedSizeBufferWriter(made), batch.schema) as writer:
        writer.write_batch(batch)
    return made


def unpacked(blob: Bytes) -> list[pa.RecordBatch]:
    """Return the batches of ``packed``; they share the memory of the bytes."""
    with pa.ipc.open_stream(blob) as reader:
        return list(reader)


def cells(blobs: pa.Array) -> Iterator[pa.Buffer]:
    """Yield the bytes of a column of bytes without NULL; they share its memory.

    >>> [cell.to_pybytes() for cell in cells(pa.array([b"ab", b"", b"c"]).slice(1))]
    [b'', b'c']
    """
    _, places, data = blobs.buffers()
    kind = np.int64 if pa.types.is_large_binary(blobs.type) else np.int32
    ends = np.frombuffer(places, kind)[blobs.offset : blobs.offset + len(blobs) + 1].tolist()
    whole = pa.py_buffer(b"") if data is None else data
    for start, stop in pairwise(ends):
        yield whole.slice(start, stop - start)


def batches_of(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Yield messages as Arrow batches of ``SCHEMA``, in their order."""
    some: list[Message] = []
    size = 0
    for message in messages:
        if some and size + len(message.blob) > ALONE_BYTES:
            yield _batch(some)
            some, size = [], 0
        some.append(message)
        size += len(message.blob)
    if some:
        yield _batch(some)


def _batch(messages: list[Message]) -> pa.RecordBatch:
    *columns, blobs = zip(*messages, strict=True)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, SCHEMA.types, strict=False)]
    ends = np.cumsum([0, *map(len, blobs)], dtype=np.int32)
    data = pa.py_buffer(blobs[0] if len(blobs) == 1 else b"".join(map(memoryview, blobs)))
    places = [None, pa.py_buffer(ends), data]
    made = pa.Array.from_buffers(pa.binary(), len(blobs), places)
    return pa.RecordBatch.from_arrays([*arrays, made], schema=SCHEMA)
