"""Debezium's rows and transaction metadata as the input of the envelope ``transactions``.

A source with a consistency topic reads two topics: rows from one (``connectors.debezium``), and
from the other which transactions there are::

    {"status": "BEGIN", "id": "571:5329"}
    {"status": "END", "id": "571:5329", "event_count": 3, "data_collections":
      [{"data_collection": "public.orders", "event_count": 2}, …]}

by themselves, or as the ``payload`` of a message that carries its schema; in JSON, or as the rows
are. A value without a status is not one of these and is left out: sinks write their progress there.

Which of the collections is the source's is said by ``WITH (data_collection = '…')``; else it is
the one that the topic is named after: ``server.public.orders`` is of ``public.orders``. Collections
that are not the source's are other sources' affair.

Parts are named ``topic/partition``: ``connectors.kafka.consistent``.

Tests: tests/connectors/test_transactions.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.faults import UNDECODABLE, Faults, named
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Decoded, Field
from reclock.connectors.kafka.consistent import partitions_of, topic_of
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, TEXT, Array, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.connectors.debezium import DebeziumDecode
    from reclock.connectors.format.decoder import Decoder
    from reclock.sql.types import Type

BEGIN: Final = "BEGIN"
END: Final = "END"

_COLLECTION: Final = Record((("data_collection", TEXT), ("event_count", BIGINT)))
_FIELDS: Final[tuple[tuple[str, Type], ...]] = (
    ("status", TEXT), ("id", TEXT), ("event_count", BIGINT),
    ("data_collections", Array(_COLLECTION)),
)  # fmt: skip
_IMAGES: Final = (
    pa.bool_(), pa.bool_(), pa.string(), pa.int32(), pa.string(), pa.int64(), pa.int64(),
)  # fmt: skip
"""What a row has between its columns and its order, and a mention of a transaction has not."""

_JSON: Final = b"{"
_SHOWN: Final = 5
"""How many collections are named where they are shown."""


def metadata_fields() -> list[Field]:
    """Return what to decode of a message of the consistency topic."""
    inside = pa.struct([("data_collection", pa.string()), ("event_count", pa.int64())])
    kinds = (pa.string(), pa.string(), pa.int64(), pa.list_(inside))
    fields = [Field(n, t, kind, nullable=True) for (n, t), kind in zip(_FIELDS, kinds, strict=True)]
    arrow = pa.struct([pa.field(f.name, f.arrow) for f in fields])
    return [*fields, Field("payload", Record(_FIELDS), arrow, nullable=True)]


def metadata_decoder(given: Format, options: Mapping[str, str]) -> Decoder:
    """Return the decoder of a consistency topic, whose rows are in the format ``given``."""
    plain = decoder_of(Format("json"), metadata_fields(), {})
    if given.kind == "json":
        return plain
    return _Either(plain, decoder_of(given, metadata_fields(), options))


@dataclass(frozen=True)
class _Either:
    """JSON where a message looks like it, as sinks write theirs whatever their rows are."""

    plain: Decoder
    other: Decoder

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and the faults of binary payloads."""
        first = [value is not None and value[:1] == _JSON for value in data.to_pylist()]
        if all(first):
            return self.plain.decode(data)
        if not any(first):
            return self.other.decode(data)
        parts = [(self.plain if is_json else self.other).decode(data.slice(at, 1))
                 for at, is_json in enumerate(first)]  # fmt: skip
        faults = [_faults(part) for part in parts]
        columns = zip(*(part.columns for part in parts), strict=True)
        return Decoded(tuple(map(pa.concat_arrays, columns)), pa.concat_arrays(faults))


def _faults(decoded: Decoded) -> pa.Array:
    if decoded.faults is not None:
        return decoded.faults.cast(pa.string())
    return pa.nulls(len(decoded.columns[0]), pa.string())


@dataclass(frozen=True)
class TransactionsDecode:
    """How records of both topics become statements: ``rows`` those of rows, of ``topic``.

    ``metadata`` decodes ``metadata_fields``; ``collection`` is what the rows are called there,
    None if the topic says it.
    """

    rows: DebeziumDecode
    metadata: Decoder
    topic: str
    consistency_topic: str
    collection: str | None = None
    whose: str = "partition"

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """Those of the row's columns."""
        return self.rows.types

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the input of the envelope, in the order of the records."""
        if raw.num_rows and topic_of(raw.column(0)[0].as_py()) == self.consistency_topic:
            return self._stated(raw)
        numbers = partitions_of(raw.column(0))
        made = self.rows(raw.set_column(0, "partition", numbers))
        kept = raw.column("value").is_valid()
        return made.set_column(0, made.schema.names[0], raw.column(0).filter(kept))

    def _stated(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return what is said of transactions."""
        raw = raw.filter(raw.column("value").is_valid())
        faults = Faults(raw, self.whose)
        decoded = self.metadata.decode(raw.column("value"))
        if decoded.faults is not None:
            faults.add_each(decoded.faults, UNDECODABLE, "its value cannot be decoded")
        *columns, payload = decoded.columns
        if payload.null_count < len(payload):
            inside = payload.flatten()
            whole = payload.is_valid().to_numpy(zero_copy_only=False)
            columns = [_chosen(whole, a, b) for a, b in zip(inside, columns, strict=True)]
        said = [self._said(*row) for row in zip(*(c.to_pylist() for c in columns), strict=True)]
        for reason in {wrong for *_, wrong in said if wrong is not None}:
            which = pa.array([wrong == reason for *_, wrong in said])
            faults.add(which, UNDECODABLE, reason)
        code, message = faults.columns()
        bad = code.is_valid().to_numpy(zero_copy_only=False)
        keep = bad | np.array([status is not None for _, status, *_ in said], np.bool_)
        ids, statuses, counts, names = (
            [None if wrong else s[n] for s, wrong in zip(said, bad, strict=True)] for n in range(4)
        )
        nothing = [pa.nulls(raw.num_rows, kind) for kind in (*self.types, *self.types, *_IMAGES)]
        stated = [
            pa.array(ids, pa.string()), *(pa.nulls(raw.num_rows, pa.int64()) for _ in range(2)),
            pa.array(statuses, pa.string()), pa.nulls(raw.num_rows, pa.int64()),
            pa.array(counts, pa.int64()), pa.array(names, pa.string()), code, message,
        ]  # fmt: skip
        made = named([raw.column(0), raw.column(1), *nothing, raw.column(1), *stated])
        return made.filter(pa.array(keep))

    def _said(
        self, status: str | None, name: str | None, count: int | None, listed: list[Any] | None
    ) -> tuple[str | None, str | None, int | None, str | None, str | None]:
        """Return transaction, status, count, collections, and what is wrong with them."""
        if status is None:
            return None, None, None, None, None
        if name is None or status not in (BEGIN, END):
            return None, None, None, None, "it says neither BEGIN nor END of a transaction"
        if status == BEGIN:
            return name, status, None, None, None
        if listed is None and count != 0:
            return None, None, None, None, "it ends a transaction, and does not say its collections"
        found = {e["data_collection"]: e["event_count"] for e in listed or () if e is not None}
        if None in found or any(n is None or n < 0 for n in found.values()):
            return None, None, None, None, "it does not say how many rows of each collection it has"
        names = ", ".join(f'"{n}"' for n in sorted(found)[:_SHOWN])
        own = self._own(found)
        return name, status, None if own is None else found[own], names, None

    def _own(self, names: Mapping[str, int]) -> str | None:
        """Return which of the collections is this source's, if one is."""
        if self.collection is not None:
            return self.collection if self.collection in names else None
        if self.topic in names:
            return self.topic
        return max((n for n in names if self.topic.endswith(f".{n}")), key=len, default=None)


def _chosen(which: Sequence[bool], one: pa.Array, other: pa.Array) -> pa.Array:
    at = np.arange(len(one))
    both = pa.concat_arrays([one, other])
    return both.take(pa.array(np.where(which, at, at + len(one))))
