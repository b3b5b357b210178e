"""Arranges a collection by some of its columns, and back.

Definition. ``Keying(types, key)`` turns a delta into the updates of an arrangement, and
those back into the delta, with the columns where they were::

    c0, …, c{n−1}, time, diff   ⇄   kh, <columns of key>, <the other columns>, time, diff

``kh`` is the hash of the key columns in canonical form (one NaN, one zero), so equal keys
have equal hashes wherever they are computed. A column may be in the key twice. Two
collections keyed by columns of the same types can be looked up in each other's traces.

Tests: tests/dataflow/test_keying.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import Layout
from reclock.dataflow.delta import Types, build, key_hash, rows_of, schema_of
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from reclock.arrangement.layout import Int64s


@dataclass(frozen=True)
class Keying:
    """Columns of these types, arranged by ``key``, a list of their positions.

    >>> Keying((pa.int64(), pa.string()), (1,)).layout.schema.names
    ['kh', 'c1', 'c0', 'time', 'diff']
    """

    types: Types
    key: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse a key column that is not there."""
        for column in self.key:
            if not 0 <= column < len(self.types):
                message = f"key column {column} of {len(self.types)} columns"
                raise InvalidValue(message)

    @classmethod
    def whole_row(cls, types: Types) -> Keying:
        """Return the keying by all columns."""
        return cls(types, tuple(range(len(types))))

    @cached_property
    def layout(self) -> Layout:
        """The columns of the arrangement."""
        fields = list(schema_of(self.types))
        return Layout(
            tuple(fields[i] for i in self.key), tuple(fields[i] for i in self._arranged[1])
        )

    @cached_property
    def _arranged(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where each user column is among key and value columns; which columns are values."""
        value = tuple(i for i in range(len(self.types)) if i not in self.key)
        order = [*self.key, *value]
        return tuple(order.index(i) for i in range(len(self.types))), value

    def place(self, column: int) -> int:
        """Return which column of the arrangement a user column is."""
        return 1 + self._arranged[0][column]

    def arrange(self, delta: pa.RecordBatch) -> pa.RecordBatch:
        """Return the delta as updates of the arrangement, in canonical form."""
        rows = [canonical(column) for column in rows_of(delta)]
        key = [rows[i] for i in self.key]
        value = [rows[i] for i in self._arranged[1]]
        kh = key_hash(key, delta.num_rows)
        columns = [pa.array(kh), *key, *value, *delta.columns[-2:]]
        return pa.RecordBatch.from_arrays(columns, schema=self.layout.schema)

    def columns(self, updates: pa.RecordBatch) -> list[pa.Array]:
        """Return the user columns of updates of the arrangement, where they were."""
        rows = self.layout.rows(updates)
        return [rows[i] for i in self._arranged[0]]

    def restore(self, updates: pa.RecordBatch) -> pa.RecordBatch:
        """Return updates of the arrangement as a delta."""
        return build(self.columns(updates), *updates.columns[-2:])

    def keys(self, updates: pa.RecordBatch, rows: Int64s | None = None) -> pa.RecordBatch:
        """Return ``kh, <key…>`` of some updates, or of all: what to look up in a trace."""
        columns = updates.columns[: 1 + len(self.key)]
        if rows is not None:
            at = pa.array(rows)
            columns = [column.take(at) for column in columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.layout.key_schema)
