"""Envelopes: what the records of a source say in addition to the columns of a row, and where.

Definition. The input of a source has the columns of its rows, then those of its envelope::

    none      code text, message text
    upsert    order int64, tombstone bool, code text, message text
    debezium  one column per column of the row (the row before), has_before bool,
              has_after bool, op text, partition int32, position_1 text, position_2 int64,
              position_3 int64, order int64, code text, message text
    materialize   time int64, diff int64, lower int64, upper int64, counts text,
              code text, message text
    transactions  those of debezium up to order, transaction text, total_order int64,
              collection_order int64, status text, number int64, count int64,
              collections text, code text, message text

A record with a ``code`` is a fault: it could not be decoded, and becomes an error row (code,
message). ``order`` is never NULL, and tells which of the records of one key at one time is
the last. Records are written as deltas of those columns, each with the diff 1.

In the debezium envelope the columns of the row are the row after; ``has_before`` and
``has_after`` say which of the two rows the record has, ``op`` is ``c``, ``r``, ``u`` or ``d``,
or NULL for a record without a value. Of a record without a row after, a fault too, the
columns of the key may hold the key of the record (from the key of the message). ``position_…``
is where the change is in the log of its database: later changes of a partition have greater
ones, compared part by part; position_1 is NULL if it is not known.

In the materialize envelope a record is a statement of CDCv2: an update has ``time`` and ``diff``;
progress has ``lower``, ``upper`` (NULL: all times) and ``counts``, a JSON array of pairs of times
and counts; a fault that has been given a time has ``time``. Its rows bring their times with
them: statements wait, outside of the graph, until a time is closed, and what they say of it comes
into the graph as with the envelope none.

In the transactions envelope a record is one of debezium that belongs to a ``transaction``, at a
place in it (``total_order``, and ``collection_order`` among those of its table), or what is said
of a transaction: it has a ``status``, BEGIN, or END with the ``count`` of its rows in this source,
NULL if that is not among the ``collections`` that it names. A ``number`` is given to it when it is
kept; what was released is kept by its number for a while, as DONE, and a key that was changed out
of turn with the number and the ``total_order`` of that change, without a status. These too wait
outside of the graph; rows of a transaction that is whole come into it as with the envelope
debezium.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.dataflow.delta import Types

NONE: Final = "none"
UPSERT: Final = "upsert"
DEBEZIUM: Final = "debezium"
MATERIALIZE: Final = "materialize"
TRANSACTIONS: Final = "transactions"

OWN_TIMES: Final = frozenset({MATERIALIZE})
"""Those whose records bring their times with them."""

_FAULT: Final = (pa.field("code", pa.string()), pa.field("message", pa.string()))
_UPSERT: Final = (pa.field("order", pa.int64()), pa.field("tombstone", pa.bool_()), *_FAULT)
_MATERIALIZE: Final = (
    *(pa.field(name, pa.int64()) for name in ("time", "diff", "lower", "upper")),
    pa.field("counts", pa.string()),
    *_FAULT,
)
_DEBEZIUM: Final = (
    pa.field("has_before", pa.bool_()),
    pa.field("has_after", pa.bool_()),
    pa.field("op", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("position_1", pa.string()),
    pa.field("position_2", pa.int64()),
    pa.field("position_3", pa.int64()),
    pa.field("order", pa.int64()),
    *_FAULT,
)
_TRANSACTION: Final = (
    pa.field("transaction", pa.string()),
    pa.field("total_order", pa.int64()),
    pa.field("collection_order", pa.int64()),
    pa.field("status", pa.string()),
    pa.field("number", pa.int64()),
    pa.field("count", pa.int64()),
    pa.field("collections", pa.string()),
)


def envelope_fields(envelope: str, row: Types) -> tuple[pa.Field, ...]:
    """Return the columns of an envelope, which come after those of the row.

    >>> [field.name for field in envelope_fields(UPSERT, (pa.int64(),))]
    ['order', 'tombstone', 'code', 'message']
    >>> [field.name for field in envelope_fields(DEBEZIUM, (pa.int64(),))][:3]
    ['before_0', 'has_before', 'has_after']
    """
    if envelope in (DEBEZIUM, TRANSACTIONS):
        before = (pa.field(f"before_{i}", kind) for i, kind in enumerate(row))
        if envelope == TRANSACTIONS:
            return (*before, *_DEBEZIUM[: -len(_FAULT)], *_TRANSACTION, *_FAULT)
        return (*before, *_DEBEZIUM)
    return {NONE: _FAULT, UPSERT: _UPSERT, MATERIALIZE: _MATERIALIZE}[envelope]


def envelope_columns(envelope: str, row: Types, records: pa.RecordBatch) -> Mapping[str, pa.Array]:
    """Return the columns of the envelope of records of rows of these types, by name."""
    fields = envelope_fields(envelope, row)
    columns = records.columns[len(row) : len(row) + len(fields)]
    return {field.name: column for field, column in zip(fields, columns, strict=True)}


def envelope_types(envelope: str, row: Types) -> Types:
    """Return the types of the columns of an envelope."""
    return tuple(field.type for field in envelope_fields(envelope, row))


def input_types(envelope: str, row: Types) -> Types:
    """Return the types of the input of a source: those of the row, then of the envelope."""
    return (*row, *envelope_types(envelope, row))
