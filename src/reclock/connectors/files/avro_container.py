"""Avro's container files: records in blocks, each file with its own schema; positions are numbers.

A file begins with a header, which has the schema that it was written with; blocks of records
follow, each with their count, its size, and a mark at its end. A block is there when its mark is,
so a file may grow, block by block; one without its whole header is waited for.

Records are resolved to the declared schema, as Avro defines it (fields by name, defaults for what
is missing, wider numbers), and passed on as values of that, so that what decodes Avro from Kafka
decodes them too. A file whose schema cannot be resolved to it stops the source: no record of it
could ever be right.

fastavro reads and writes records; the ends of blocks are found here, because it cannot tell of a
block that is not whole yet. Cost: a measure passes over new blocks without reading them.
Tests: tests/connectors/files/test_avro_container.py.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import fastavro
import pyarrow as pa

from reclock.connectors.files.content import BATCH_BYTES, PLACE, Measure, parts
from reclock.connectors.files.failure import changed, truncated, unfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.connectors.files.content import Stretch

_MAGIC: Final = b"Obj\x01"
_MARK: Final = 16
_LONGEST: Final = 10
"""Bytes of the longest number."""

_HINT: Final = "write container files, as Avro's own libraries do"


class _Header(NamedTuple):
    """The first bytes of a file, with its schema, and the mark that ends each of its blocks."""

    data: bytes

    @property
    def mark(self) -> bytes:
        return self.data[-_MARK:]


class _Block(NamedTuple):
    """So many ``records`` from number ``first`` on, in the bytes ``[start, stop)``."""

    first: int
    records: int
    start: int
    stop: int


class _Known(NamedTuple):
    """How far blocks were passed."""

    header: _Header
    stop: int
    records: int


@dataclass(frozen=True, slots=True)
class AvroContainer:
    """Files whose records are resolved to ``declared``, the JSON text of a schema."""

    declared: str

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        return pa.schema([*PLACE, ("value", pa.binary())])

    def measure(self, file: BinaryIO, name: str, size: int, known: Measure | None) -> Measure:
        """Return the number of records in whole blocks."""
        before = known.memory if known is not None else None
        if isinstance(before, _Known):
            header, stop, records = before
        else:
            found = _header(file, name, size)
            if found is None:
                return Measure(0, 0)
            header, stop, records = found, len(found.data), 0
        for block in _blocks(file, name, size, _Known(header, stop, records)):
            stop, records = block.stop, block.first + block.records
        return Measure(records, stop, _Known(header, stop, records))

    def measure_complete(self, file: BinaryIO, name: str, size: int) -> Measure:
        """Return the number of records of a file that must consist of whole blocks."""
        found = self.measure(file, name, size, None)
        if found.raw != size:
            detail = f"of its {size} bytes the last {size - found.raw} are no whole block"
            raise unfit(name, "is not complete", detail, "wait until it is written")
        return found

    def pieces(self, file: BinaryIO, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        """Yield the records of a stretch, about 8 MiB of blocks at a time."""
        size = file.seek(0, io.SEEK_END)
        header = _header(file, stretch.name, size)
        if header is None:
            raise changed(stretch.name, stretch.stop)
        some: list[_Block] = []
        end = 0
        for block in _blocks(file, stretch.name, size, _Known(header, len(header.data), 0)):
            end = block.first + block.records
            if end <= stretch.start:
                continue
            if some and block.stop - some[0].start > BATCH_BYTES:
                yield self._batch(file, header, some, stretch)
                some = []
            some.append(block)
            if end >= stretch.stop:
                break
        if end < stretch.stop:
            raise truncated(stretch.name, stretch.stop, end)
        if some:
            yield self._batch(file, header, some, stretch)

    def grain(self, name: str) -> int:
        """Return 1: positions are records."""
        del name
        return 1

    def _batch(
        self, file: BinaryIO, header: _Header, blocks: Sequence[_Block], stretch: Stretch
    ) -> pa.RecordBatch:
        """Return the records of adjacent blocks that are in the stretch."""
        file.seek(blocks[0].start)
        data = file.read(blocks[-1].stop - blocks[0].start)
        writer = _writer(self.declared)
        offsets, values = [], []
        try:
            found = fastavro.reader(io.BytesIO(header.data + data), reader_schema=writer)
            for number, record in enumerate(found, blocks[0].first):
                if stretch.start <= number < stretch.stop:
                    out = io.BytesIO()
                    fastavro.schemaless_writer(out, writer, record)
                    offsets.append(number)
                    values.append(out.getvalue())
        except Exception as error:  # it has no class for what is not Avro
            detail = f"{type(error).__name__}: {error}"
            hint = "declare a schema to which that of every file can be resolved"
            raise unfit(stretch.name, "has records of another schema", detail, hint) from error
        columns = [
            parts(stretch.name, len(offsets)),
            pa.array(offsets, pa.int64()),
            pa.array(values, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@lru_cache(maxsize=16)
def _writer(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


def _header(file: BinaryIO, name: str, size: int) -> _Header | None:
    """Return the header of a file; None if it is not whole yet."""
    file.seek(0)
    magic = file.read(len(_MAGIC))
    if magic != _MAGIC[: len(magic)]:
        detail = f"it begins with {magic!r}, not with {_MAGIC!r}"
        raise unfit(name, "is no Avro container file", detail, _HINT)
    file.seek(0)
    try:
        fastavro.block_reader(file)  # reads the header, and no more
    except Exception as error:
        if file.tell() >= size or size < len(_MAGIC) + _MARK:
            return None
        detail = f"{type(error).__name__}: {error}"
        raise unfit(name, "has no schema that can be read", detail, _HINT) from error
    stop = file.tell()
    file.seek(0)
    return _Header(file.read(stop))


def _blocks(file: BinaryIO, name: str, size: int, known: _Known) -> Iterator[_Block]:
    """Yield the whole blocks after those that are known."""
    header, at, records = known
    while at < size:
        file.seek(at)
        head = io.BytesIO(file.read(2 * _LONGEST))
        count, length = _number(head), _number(head)
        if count is None or length is None:
            return  # the rest is not there yet
        stop = at + head.tell() + length + _MARK
        if count < 0 or length < 0:
            raise unfit(name, "is damaged", f"the block at byte {at} has no size", _HINT)
        if stop > size:
            return
        file.seek(stop - _MARK)
        if file.read(_MARK) != header.mark:
            raise unfit(name, "is damaged", f"the block at byte {at} has no mark at its end", _HINT)
        yield _Block(records, count, at, stop)
        at, records = stop, records + count


def _number(data: BinaryIO) -> int | None:
    """Return a number as Avro writes it; None if it is cut short."""
    found = 0
    for at in range(_LONGEST):
        byte = data.read(1)
        if not byte:
            return None
        found |= (byte[0] & 0x7F) << (7 * at)
        if byte[0] < 0x80:
            break
    return (found >> 1) ^ -(found & 1)
