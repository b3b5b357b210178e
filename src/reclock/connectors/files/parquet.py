"""Parquet files: records that have their types already; positions are numbers of rows.

A Parquet file is there when its footer is, and does not change from then on: there is no
tailing, a directory gets new files. A file that has no footer yet is waited for.

Batches have the columns ``part, offset``, then one column ``c0, c1, …`` for every declared
column, by name from the file and cast to its type, then ``fault``: why a row cannot be taken,
NULL if it can. Columns that are not declared are not read; a declared one that a file does not
have, or has as something that cannot be cast, stops the source: no row of the file could ever
be right.

Cost: only the row groups that a range touches are read, and of them the declared columns.
Memory: about 8 MiB of rows, and what Parquet needs to decode a page of each column.
Tests: tests/connectors/files/test_parquet.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reclock.connectors.files.cast import cast
from reclock.connectors.files.content import BATCH_BYTES, BATCH_ROWS, PLACE, Measure, parts
from reclock.connectors.files.failure import changed, truncated, unfit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.files.content import Stretch

_MAGIC: Final = b"PAR1"
_SMALLEST: Final = 12
_BUFFER: Final = 1 << 20


class Field(Protocol):
    """A declared column: its name, how its values are stored, whether they may be NULL."""

    @property
    def name(self) -> str:
        """Its name in the files."""
        ...

    @property
    def arrow(self) -> pa.DataType:
        """The type that its values get."""
        ...

    @property
    def nullable(self) -> bool:
        """Whether NULL is a value of it."""
        ...


@dataclass(frozen=True, slots=True)
class Parquet:
    """The declared columns of Parquet files."""

    fields: tuple[Field, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        values = [(f"c{at}", field.arrow) for at, field in enumerate(self.fields)]
        return pa.schema([*PLACE, *values, ("fault", pa.string())])

    def measure(self, file: BinaryIO, name: str, size: int, known: Measure | None) -> Measure:
        """Return the number of rows; none as long as there is no footer."""
        if known is not None and known.raw and known.raw != size:
            raise changed(name, known.end)
        if not _has_footer(file, name, size):
            return Measure(0, 0)
        return Measure(_opened(file, name).metadata.num_rows, size)

    def measure_complete(self, file: BinaryIO, name: str, size: int) -> Measure:
        """Return the number of rows of a file that must be complete."""
        if not _has_footer(file, name, size):
            detail = f"its {size} bytes have no footer"
            raise unfit(name, "is not complete", detail, "wait until it is written")
        return Measure(_opened(file, name).metadata.num_rows, size)

    def pieces(self, file: BinaryIO, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a stretch."""
        size = file.seek(0, os.SEEK_END)
        if not _has_footer(file, stretch.name, size):
            raise changed(stretch.name, stretch.stop)
        opened = _opened(file, stretch.name)
        if opened.metadata.num_rows < stretch.stop:
            raise truncated(stretch.name, stretch.stop, opened.metadata.num_rows)
        self._check(opened.schema_arrow, stretch.name)
        names = [field.name for field in self.fields]
        for at, batch in _rows(opened, stretch, names):
            yield self._typed(batch, at, stretch.name)

    def grain(self, name: str) -> int:
        """Return 1: positions are records."""
        del name
        return 1

    def _check(self, schema: pa.Schema, name: str) -> None:
        """Refuse a file that lacks a declared column."""
        for field in self.fields:
            if len(schema.get_all_field_indices(field.name)) != 1:
                many = field.name in schema.names
                why = f'has {"more than one" if many else "no"} column "{field.name}"'
                detail = f"its columns are {', '.join(schema.names) or 'none'}"
                raise unfit(name, why, detail, "declare columns that every file has")

    def _typed(self, batch: pa.RecordBatch, at: int, name: str) -> pa.RecordBatch:
        faults: dict[int, str] = {}
        columns = []
        for field in self.fields:
            found = batch.column(field.name)
            made = cast(found, field.arrow)
            if made is None:
                detail = f"it is {found.type} there, which cannot be cast to {field.arrow}"
                why = f'has another column "{field.name}" than the source'
                raise unfit(name, why, detail, "declare the column as the files have it")
            for place, fault in made.faults.items():
                faults.setdefault(place, f'column "{field.name}": {fault}')
            if not field.nullable and made.values.null_count:
                for place in np.flatnonzero(made.values.is_null()).tolist():
                    faults.setdefault(place, f'column "{field.name}" must not be NULL')
            columns.append(made.values)
        columns, fault = _without_faulty(columns, faults, batch.num_rows)
        offsets = pa.array(np.arange(at, at + batch.num_rows))
        arrays = [parts(name, batch.num_rows), offsets, *columns, fault]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _without_faulty(
    columns: list[pa.Array], faults: dict[int, str], count: int
) -> tuple[list[pa.Array], pa.Array]:
    """Return the columns, NULL in every row that has a fault, and the faults."""
    if not faults:
        return columns, pa.nulls(count, pa.string())
    texts = [faults.get(at) for at in range(count)]
    places = pa.array([None if text else at for at, text in enumerate(texts)], pa.int64())
    return [column.take(places) for column in columns], pa.array(texts, pa.string())


def _has_footer(file: BinaryIO, name: str, size: int) -> bool:
    """Return whether a file is whole; refuse what will never be a Parquet file."""
    file.seek(0)
    if size >= len(_MAGIC) and file.read(len(_MAGIC)) != _MAGIC:
        raise unfit(name, "is not a Parquet file", "it does not begin with PAR1")
    if size < _SMALLEST:
        return False
    file.seek(size - len(_MAGIC))
    return file.read(len(_MAGIC)) == _MAGIC


def _opened(file: BinaryIO, name: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(pa.PythonFile(file, "r"), buffer_size=_BUFFER, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise unfit(name, "is not a Parquet file", str(error).strip()) from None


def _rows(
    opened: pq.ParquetFile, stretch: Stretch, names: list[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a stretch, with the number of the first of each batch."""
    first = 0
    for group in range(opened.num_row_groups):
        found = opened.metadata.row_group(group)
        last = first + found.num_rows
        if first < stretch.stop and last > stretch.start:
            width = max(1, found.total_byte_size // max(1, found.num_rows))
            rows = int(min(BATCH_ROWS, max(1, BATCH_BYTES // width)))
            at = first
            for batch in opened.iter_batches(rows, row_groups=[group], columns=names):
                begin = max(stretch.start - at, 0)
                end = min(stretch.stop - at, batch.num_rows)
                if begin < end:
                    yield at + begin, batch.slice(begin, end - begin)
                at += batch.num_rows
                if at >= stretch.stop:
                    break
        first = last
