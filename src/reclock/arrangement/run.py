"""A run: one immutable, consolidated piece of a shard, as bytes and as a reference.

Bytes. An Arrow IPC stream that any Arrow library reads, then a table of its batches::

    <schema message> <batch message>… <end of stream> <table: JSON> <u32 size of table> RUN1

The table has for each batch its place, rows, CRC-32, and first and last ``kh``, so one
batch can be found, checked and read without touching the others. Batches are mapped, not
copied. A ``RunRef`` holds the CRC of the table, and so vouches for every byte of the run.

When bytes are checked: the table when the run is opened, a batch when it is first touched
in a process; of a file that is far away, whenever it is read again. A wrong byte is an error that
names the run and its segment, never a wrong answer; opening a shard costs nothing that grows with
its size.

``RunRef`` is what manifests store: JSON with a version. The bytes are in a segment, or
inline in the reference when there are few, deflated since version 2: of a few rows, half is
schema and padding; or nowhere when the run has no rows. Since version 3 a reference may say the
``time`` of all updates, whatever their bytes say: what was written before its time was known is
bound to it by the reference alone.

Tests: tests/arrangement/test_run.py.
"""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.file import Place
from reclock.arrangement.hashes import Hashes
from reclock.arrangement.layout import kh_of
from reclock.errors import Corrupt, InvalidValue, NewerFormat
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from reclock.arrangement.file import File
    from reclock.arrangement.layout import Int64s, Layout

VERSION: Final = 3
MAGIC: Final = b"RUN1"
TAIL_BYTES: Final = 64 << 10
"""So much of the end of a run is read when it is opened: the table, or all of a small run."""

AHEAD_BYTES: Final = 16 << 20
"""So much of a run that is far away is read ahead."""

_TAIL: Final = struct.Struct("<I4s")
_END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"


@dataclass(frozen=True, slots=True)
class RunRef:
    """Where a run is, what it describes, and the checksum of its table.

    ``name`` is for people: the operator and shard it belongs to. A run that only ``adds`` has no
    update with a negative diff; what was written before this was noted may have some.
    """

    name: str
    description: Description[Timestamp]
    rows: int
    length: int
    checksum: int
    segment: str | None = None
    offset: int = 0
    inline: bytes | None = None
    time: Timestamp | None = None
    adds: bool = False

    def __hash__(self) -> int:
        """Hash what tells runs apart, and not all the rest: references are looked up often."""
        return hash((self.segment, self.offset, self.checksum))

    def __str__(self) -> str:
        place = f"segment {self.segment}" if self.segment else "its manifest"
        return f"run {self.name} {self.description} in {place}"

    def to_json(self) -> dict[str, Any]:
        """Return the form that manifests store."""
        made: dict[str, Any] = {
            "v": VERSION,
            "name": self.name,
            "lower": list(map(int, self.description.lower)),
            "upper": list(map(int, self.description.upper)),
            "since": list(map(int, self.description.since)),
            "rows": self.rows,
            "length": self.length,
            "checksum": self.checksum,
        }
        if self.segment is not None:
            made |= {"segment": self.segment, "offset": self.offset}
        if self.inline is not None:
            made["inline"] = b64encode(zlib.compress(self.inline, zlib.Z_BEST_SPEED)).decode()
        if self.time is not None:
            made["time"] = int(self.time)
        if self.adds:
            made["adds"] = True
        return made

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> RunRef:
        """Read what ``to_json`` wrote, in this version or an earlier one."""
        try:
            if stored["v"] > VERSION:
                message = f"run reference has format {stored['v']}, newer than {VERSION}"
                raise NewerFormat(message, hint="open the state with a later reclock")
            lower, upper, since = (
                Antichain(map(Timestamp, stored[name])) for name in ("lower", "upper", "since")
            )
            return cls(
                name=stored["name"],
                description=Description(lower, upper, since),
                rows=stored["rows"],
                length=stored["length"],
                checksum=stored["checksum"],
                segment=stored.get("segment"),
                offset=stored.get("offset", 0),
                inline=_inline(stored),
                time=Timestamp(stored["time"]) if "time" in stored else None,
                adds=stored.get("adds", False),
            )
        except (KeyError, TypeError, ValueError, zlib.error, InvalidValue) as cause:
            message = "run reference does not decode"
            raise Corrupt(message, detail=f"{stored!r}: {cause!r}") from cause


def _inline(stored: dict[str, Any]) -> bytes | None:
    if "inline" not in stored:
        return None
    data = b64decode(stored["inline"])
    return data if stored["v"] == 1 else zlib.decompress(data)


class Encoder:
    """Turn consolidated batches into the bytes of a run, piece by piece."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.rows = 0
        self.length = 0
        self.checksum = 0
        self.adds = True

    def encode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Buffer]:
        """Yield the bytes; rows, length and checksum are set when it ends."""
        schema = self._layout.schema_bytes
        yield self._counted(schema)
        table: dict[str, Any] = {"schema": [len(schema), zlib.crc32(schema)], "batches": []}
        for batch in batches:
            kh = kh_of(batch)
            offset, message = self.length, batch.serialize()
            yield self._counted(message)
            entry = [
                offset,
                len(message),
                batch.num_rows,
                zlib.crc32(message),
                int(kh[0]),
                int(kh[-1]),
            ]
            table["batches"].append(entry)
            self.rows += batch.num_rows
            self.adds = self.adds and bool((batch.columns[-1].to_numpy() > 0).all())
            del batch, kh, message  # large: not kept while the next one is made
        yield self._counted(pa.py_buffer(_END_OF_STREAM))
        text = json.dumps(table, separators=(",", ":")).encode()
        tail = text + _TAIL.pack(len(text), MAGIC)
        self.checksum = zlib.crc32(tail)
        yield self._counted(pa.py_buffer(tail))

    def _counted(self, piece: pa.Buffer) -> pa.Buffer:
        self.length += len(piece)
        return piece


class Run:
    """An open run: its batches, mapped, each checked when first touched."""

    def __init__(self, ref: RunRef, layout: Layout, opened: Callable[[], File]) -> None:
        """Read the table from the file that has the run, and check it."""
        self.ref = ref
        self.layout = layout
        self._table: list[list[int]] = []
        if ref.rows:
            self._file = opened()
            self._kept = self._file.kept
            self._tail = Place(max(0, ref.length - TAIL_BYTES), min(TAIL_BYTES, ref.length))
            self._end = self._piece(self._tail)
            self._read_table()
        self._batches: list[pa.RecordBatch | None] = [None] * len(self._table)
        self._hashes: list[Hashes | None] = [None] * len(self._table)
        self._firsts = [entry[4] for entry in self._table]
        self._lasts = [entry[5] for entry in self._table]
        self.first: Int64s = np.array(self._firsts, np.int64)
        self.last: Int64s = np.array(self._lasts, np.int64)
        self.sizes: Int64s = np.array([entry[2] for entry in self._table], np.int64)

    @property
    def rows(self) -> int:
        """How many updates there are."""
        return self.ref.rows

    @property
    def batch_count(self) -> int:
        """How many batches there are."""
        return len(self._table)

    def batch(self, index: int) -> pa.RecordBatch:
        """Return a batch; the first call checks its bytes."""
        batch = self._batches[index]
        if batch is None:
            offset, length, rows, checksum, _, _ = self._table[index]
            message = self._checked(Place(offset, length), checksum, f"batch {index}")
            batch = pa.ipc.read_record_batch(pa.BufferReader(message), self.layout.schema)
            if batch.num_rows != rows:
                raise corrupt(self.ref, f"batch {index} has {batch.num_rows} rows, not {rows}")
            batch = self._batches[index] = self._bound(batch)
        if self._kept is not None:
            self._kept.used(self, index, self._table[index][1])
        return batch

    def release(self, index: int) -> None:
        """Let go of a batch, which is read again when it is wanted."""
        self._batches[index] = self._hashes[index] = None

    def ahead(self, indices: Sequence[int]) -> Iterator[int]:
        """Yield the numbers of batches that will be asked for; a few are read before, together."""
        if not self._table or self._kept is None:
            yield from indices
            return
        at = 0
        while at < len(indices):
            stop, size = at, 0
            while stop < len(indices) and (stop == at or size <= AHEAD_BYTES):
                size += self._table[indices[stop]][1]
                stop += 1
            some = indices[at:stop]
            places = [
                Place(*self._table[index][:2]) for index in some if self._batches[index] is None
            ]
            self._file.ahead([self._there(place) for place in places if not self._ends_in(place)])
            yield from some
            at = stop

    def _bound(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return updates at the time that the reference says, if it does."""
        if self.ref.time is None:
            return batch
        times = pa.array(np.full(batch.num_rows, self.ref.time, np.int64))
        columns = [*batch.columns[:-2], times, batch.columns[-1]]
        return pa.RecordBatch.from_arrays(columns, schema=self.layout.schema)

    def hashes(self, index: int) -> Hashes:
        """Return the key hashes of a batch, ready to be searched."""
        hashes = self._hashes[index]
        if hashes is None:
            hashes = self._hashes[index] = Hashes(kh_of(self.batch(index)))
        return hashes

    def of_hash(self, kh: int) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """Yield where the updates of one hash are: a batch, its first row of them, and beyond."""
        for index in self._reaching(kh):
            low, high = self.hashes(index).span(kh)
            if low < high:
                yield self.batch(index), low, high

    def is_read(self, kh: int) -> bool:
        """Return whether all batches that may have updates of one hash have been touched."""
        return all(self._hashes[index] is not None for index in self._reaching(kh))

    def _reaching(self, kh: int) -> range:
        """Return the batches that may have updates of one hash."""
        return range(bisect_left(self._lasts, kh), bisect_right(self._firsts, kh))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return map(self.batch, self.ahead(range(self.batch_count)))

    def _read_table(self) -> None:
        ref = self.ref
        text = self._table_text()
        if text is None and (fresh := self._file.again(self._there(self._tail))) is not None:
            self._end = fresh
            text = self._table_text()
        if text is None:
            raise corrupt(ref, "its end is cut off or does not match its checksum")
        table = json.loads(text.to_pybytes())
        self._table = table["batches"]
        size, checksum = table["schema"]
        expected = self.layout.schema_bytes
        if self._kept is not None and [size, checksum] == [len(expected), zlib.crc32(expected)]:
            return  # not worth a request
        stored = self._checked(Place(0, size), checksum, "the schema")
        if stored.equals(expected):
            return
        schema = pa.ipc.read_schema(stored)
        if not schema.equals(self.layout.schema):
            detail = f"stored {_types(schema)}; expected {_types(self.layout.schema)}"
            if any(pa.types.is_duration(field.type) for field in schema):
                message = f"{ref} has intervals as an earlier version of reclock stored them"
                hint = "drop the object and create it again; or read it with that version"
                raise InvalidValue(message, detail=detail, hint=hint, code="0A000")
            raise corrupt(ref, detail)

    def _table_text(self) -> pa.Buffer | None:
        """Return the table if it is whole and matches the checksum."""
        end = self._end
        if len(end) != self._tail.length or len(end) < _TAIL.size:
            return None
        size, magic = _TAIL.unpack(end.slice(len(end) - _TAIL.size))
        start = self.ref.length - _TAIL.size - size
        if magic != MAGIC or start < 0:
            return None
        whole = self._piece(Place(start, size + _TAIL.size))
        return whole.slice(0, size) if zlib.crc32(whole) == self.ref.checksum else None

    def _checked(self, place: Place, checksum: int, part: str) -> pa.Buffer:
        piece = self._piece(place)
        if zlib.crc32(piece) == checksum:
            return piece
        read = self._tail if self._ends_in(place) else place
        fresh = self._file.again(self._there(read))
        if fresh is not None and read is self._tail and len(fresh) == len(self._end):
            self._end = fresh
            fresh = self._piece(place)
        if fresh is None or zlib.crc32(fresh) != checksum:
            raise corrupt(self.ref, f"{part} does not match its checksum")
        return fresh

    def _piece(self, place: Place) -> pa.Buffer:
        """Return bytes of the run, those of its end as they were read before."""
        if place is not self._tail and self._ends_in(place):
            return self._end.slice(place.offset - self._tail.offset, place.length)
        return self._file.piece(self._there(place))

    def _ends_in(self, place: Place) -> bool:
        """Return whether a place is in the end that was read when the run was opened."""
        return place.offset >= self._tail.offset and len(self._end) == self._tail.length

    def _there(self, place: Place) -> Place:
        """Return where in the file a place of the run is."""
        return Place(self.ref.offset + place.offset, place.length)


def corrupt(ref: RunRef, detail: str) -> Corrupt:
    """Return the error for a run whose bytes are not what was written."""
    hint = "restore the file from a copy, or drop and recreate the object"
    return Corrupt(f"corrupt {ref}", detail=detail, hint=hint)


def _types(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
