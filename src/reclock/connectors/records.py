"""From raw records to the input of a source's envelope: decoded once, where they are read.

A raw batch has the part and the offset of each record first, then its payload::

    part, offset, value [, key, timestamp, headers]        a log, a file
    part, offset, <columns> [, diff]                       records that have their types already

``Decode`` makes of it ``part, offset``, the row's columns, and the columns that the envelope
asks for (``dataflow.steps`` has their meaning)::

    none        code, message
    upsert      order, tombstone, code, message

A record that cannot be decoded is never left out: it has a *fault*, a code and a message that
names the place and the reason. With ``inline`` the fault is in the row itself, as the text of
its last column ``error``, wherever the row can stand without what did not decode.

A decode is a value that can be pickled: it travels to where records are read. Cost: vectorised
over the batch; Python looks at single records only where they fail. Keeps P9.

Tests: tests/connectors/test_records.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from reclock.connectors.faults import NO_VALUE, UNDECODABLE, Faults, included, named
from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.connectors.cdcv2 import Cdcv2Decode
    from reclock.connectors.debezium import DebeziumDecode
    from reclock.connectors.format.decoder import Decoder
    from reclock.connectors.transactions import TransactionsDecode


@dataclass(frozen=True)
class Part:
    """Some of a row's columns, decoded from one payload; ``places`` says which they are."""

    decoder: Decoder
    places: tuple[int, ...]


@dataclass(frozen=True)
class Decode:
    """How the records of a source become the input of its envelope.

    ``types`` are those of the row's columns; ``keys`` are what is decoded from the key.
    ``included`` has for a column the raw column that it is. With ``nullable`` a record without
    a value is a row of NULLs. ``whose`` is the source, and what its parts are called.
    """

    types: tuple[pa.DataType, ...]
    value: Part
    keys: tuple[Part, ...] = ()
    included: tuple[tuple[int, str], ...] = ()
    upserts: bool = False
    inline: bool = False
    nullable: bool = False
    whose: str = "partition"

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the input of the envelope, one row for each record, in their order."""
        faults = Faults(raw, self.whose)
        columns: list[pa.Array | None] = [None] * len(self.types)
        value = raw.column("value")
        self._decoded(self.value, value, columns, faults, "value")
        for part in self.keys:
            self._decoded(part, raw.column("key"), columns, faults, "key")
        if self.upserts:
            faults.add_keyless(raw.column("key"), [columns[at] for at in self.keys[0].places])
        elif value.null_count and not self.nullable:
            faults.add(value.is_null(), NO_VALUE, "it has no value")
        for at, name in self.included:
            columns[at] = included(raw, name, self.types[at], faults)
        if self.inline:
            columns[-1] = faults.inlined()
        rows = [
            pa.nulls(raw.num_rows, kind) if column is None else column
            for column, kind in zip(columns, self.types, strict=True)
        ]
        rest = [raw.column(1), value.is_null()] if self.upserts else []
        return named([raw.column(0), raw.column(1), *rows, *rest, *faults.columns()])

    def _decoded(
        self,
        part: Part,
        payload: pa.Array,
        columns: list[pa.Array | None],
        faults: Faults,
        what: str,
    ) -> None:
        decoded = part.decoder.decode(payload)
        for at, column in zip(part.places, decoded.columns, strict=True):
            columns[at] = column
        if decoded.faults is not None:
            faults.add_each(decoded.faults, UNDECODABLE, f"its {what} cannot be decoded")


@dataclass(frozen=True)
class Typed:
    """The same for records that have their columns already; ``faults`` may be among them."""

    types: tuple[pa.DataType, ...]
    whose: str = "partition"

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the input of the envelope; a column ``diff`` is kept as the last one."""
        faults = Faults(raw, self.whose)
        if "fault" in raw.schema.names:
            faults.add_each(raw.column("fault"), UNDECODABLE, "it cannot be decoded")
        rows = raw.columns[2 : 2 + len(self.types)]
        diff = [raw.column("diff")] if "diff" in raw.schema.names else []
        made = named([raw.column(0), raw.column(1), *rows, *faults.columns()])
        return made.append_column("diff", diff[0]) if diff else made


def decoded(
    decode: Decode | DebeziumDecode | Cdcv2Decode | TransactionsDecode | Typed,
    raw: pa.RecordBatch,
    kinds: Sequence[pa.DataType],
) -> pa.RecordBatch:
    """Return what ``decode`` makes of records: ``kinds``, after their places.

    A record on which it fails altogether, which none should, has a fault like others that do not
    decode, and does not stop the others.
    """
    try:
        return decode(raw)
    except (Error, OSError, MemoryError):
        raise  # that is not the records' fault
    except Exception as error:
        if raw.num_rows > 1:
            half = raw.num_rows // 2
            parts = raw.slice(0, half), raw.slice(half)
            return pa.concat_batches([decoded(decode, part, kinds) for part in parts])
        faults = Faults(raw, decode.whose)
        faults.add(pa.array([True]), UNDECODABLE, f"it cannot be decoded: {error}")
        nothing = [pa.nulls(1, kind) for kind in kinds[:-2]]
        return named([raw.column(0), raw.column(1), *nothing, *faults.columns()])
