"""The columns of an arrangement, and their places.

Definition. A ``Layout`` is a list of key fields and a list of value fields. Every batch of
updates of the arrangement has the columns, in this order and *addressed by position*::

    kh: int64, <key…>, <value…>, time: int64, diff: int64

so a user's column may be called ``time`` or ``kh``, or have the name of another. ``kh`` is
a 64-bit hash of the key columns, given by the caller: equal keys must have equal hashes,
and nothing else is asked of it (equality is always confirmed on the key itself).

Equality of rows is that of SQL's GROUP BY: NULL equals NULL, NaN equals NaN, −0.0 equals
0.0. ``conform`` makes it equality of bytes by storing one NaN and one zero. An interval of
months, days and nanoseconds equals another when the three numbers do.

Tests: tests/arrangement/test_layout.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical, is_storable
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

Int64s: TypeAlias = "npt.NDArray[np.int64]"

KH: Final = pa.field("kh", pa.int64(), nullable=False)
TIME: Final = pa.field("time", pa.int64(), nullable=False)
DIFF: Final = pa.field("diff", pa.int64(), nullable=False)


@dataclass(frozen=True)
class Layout:
    """The key and value columns of an arrangement.

    >>> layout = Layout.of({"id": pa.int64()}, {"name": pa.string()})
    >>> layout.schema.names
    ['kh', 'id', 'name', 'time', 'diff']
    """

    key: tuple[pa.Field, ...]
    value: tuple[pa.Field, ...]

    def __post_init__(self) -> None:
        """Refuse a type whose equality is not known here."""
        for field in (*self.key, *self.value):
            if not is_storable(field.type):
                message = f'column "{field.name}" of type {field.type} cannot be arranged'
                raise InvalidValue(message, code="0A000", hint="cast it to a plain type")

    @classmethod
    def of(cls, key: dict[str, pa.DataType], value: dict[str, pa.DataType]) -> Layout:
        """Return the layout with these names and types."""
        return cls(
            tuple(pa.field(name, kind) for name, kind in key.items()),
            tuple(pa.field(name, kind) for name, kind in value.items()),
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """All columns of a batch of updates."""
        nullable = (f.with_nullable(True).remove_metadata() for f in (*self.key, *self.value))
        return pa.schema([KH, *nullable, TIME, DIFF])

    @cached_property
    def schema_bytes(self) -> pa.Buffer:
        """The schema as runs store it."""
        return self.schema.serialize()

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The columns of a batch of keys to look up: ``kh, <key…>``."""
        return pa.schema(list(self.schema)[: 1 + len(self.key)])

    def keys(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns of updates, or of keys to look up."""
        columns: list[pa.Array] = batch.columns
        return columns[1 : 1 + len(self.key)]

    def rows(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the key and value columns of updates."""
        columns: list[pa.Array] = batch.columns
        return columns[1:-2]

    def batch(
        self,
        kh: Int64s,
        rows: Iterable[pa.Array],
        time: Int64s,
        diff: Int64s,
    ) -> pa.RecordBatch:
        """Put columns together; they are taken as they are."""
        columns = [pa.array(kh), *rows, pa.array(time), pa.array(diff)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def empty(self) -> pa.RecordBatch:
        """Return a batch without updates."""
        return self._empty

    @cached_property
    def _empty(self) -> pa.RecordBatch:
        columns = [pa.array([], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def conform(self, updates: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
        """Return ``updates`` as one batch of this layout, in canonical form.

        Columns are matched by position. Dictionaries and views become plain columns.
        """
        return _conform(updates, self.schema)

    def conform_keys(self, keys: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
        """Return ``kh, <key…>`` to look up as one batch in canonical form."""
        return _conform(keys, self.key_schema)


def _conform(given: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if given.num_columns != len(schema):
        message = f"expected {len(schema)} columns, got {given.num_columns}"
        raise InvalidValue(message, detail=f"expected {', '.join(schema.names)}")
    columns = []
    for field, column in zip(schema, given.columns, strict=True):
        if column.type != field.type:
            column = column.cast(field.type)  # noqa: PLW2901 - the same column, cast
        whole = _whole(column, field.type) if isinstance(column, pa.ChunkedArray) else column
        if not field.nullable and whole.null_count:
            message = f'column "{field.name}" has NULL in {whole.null_count} updates'
            raise InvalidValue(message)
        columns.append(canonical(whole))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def int64s(column: pa.Array) -> Int64s:
    """Return an int64 column without NULL as numpy, not copied.

    >>> int64s(pa.array([3, 4]))
    array([3, 4])
    """
    numbers: Int64s = column.to_numpy(zero_copy_only=True)
    return numbers


def time_of(batch: pa.RecordBatch) -> Int64s:
    """Return the times of a batch of updates."""
    return int64s(batch.column(batch.num_columns - 2))


def diff_of(batch: pa.RecordBatch) -> Int64s:
    """Return the diffs of a batch of updates."""
    return int64s(batch.column(batch.num_columns - 1))


def kh_of(batch: pa.RecordBatch) -> Int64s:
    """Return the key hashes of a batch of updates or of keys."""
    return int64s(batch.column(0))


def by_hash(updates: pa.RecordBatch) -> pa.RecordBatch:
    """Return updates sorted by hash; those of one hash in the order they have."""
    kh = kh_of(updates)
    if (kh[1:] >= kh[:-1]).all():
        return updates
    return updates.take(pa.array(np.argsort(kh, kind="stable")))
