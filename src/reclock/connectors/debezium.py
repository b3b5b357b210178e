"""Debezium's messages as the input of the debezium envelope.

A message has a row ``before`` and a row ``after``, the operation and where it is in the
database's own log, by itself or as the ``payload`` of a message that carries its schema::

    {"before": {…} | null, "after": {…} | null, "op": "c" | "r" | "u" | "d", "source": {…}}

The position of a change tells repetitions from changes (a connector that restarts sends again
what it sent). It is as ordered as the log is, for those databases whose messages say it::

    PostgreSQL    sequence                   ["last commit", "lsn"]
    MySQL         file, pos, row
    SQL Server    commit_lsn, change_lsn, event_serial_no

MySQL numbers its files, with more digits once they run out: numbers are compared, not texts.
Without a position no message counts as a repetition.

Columns that are NOT NULL must be in ``after``; ``before`` may lack them, unless the table's
replica identity is full. The key of a row that goes is in ``before``, else in the key of the
message.

The rows of a message without an operation, such as a sink's, tell what happened: a row was
inserted, changed or deleted.

A null value follows a deletion, for the compaction of the topic, and is ignored.

With ``transactional`` a record also has the transaction that it belongs to, and its place there
(``connectors.transactions``)::

    {…, "transaction": {"id": "…", "total_order": n, "data_collection_order": n}}

Messages of sinks have it in the header ``reclock-timestamp``, without a place. Records without a
value are left out then, because no END counts them.

Tests: tests/connectors/test_debezium.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.faults import NO_KEY, NO_VALUE, UNDECODABLE, Faults, included, named
from reclock.connectors.format.decoder import Field
from reclock.sql.types import BIGINT, TEXT, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.connectors.format.decoder import Decoded, Decoder

_SOURCE: Final = (
    ("sequence", TEXT), ("file", TEXT), ("pos", BIGINT), ("row", BIGINT),
    ("commit_lsn", TEXT), ("change_lsn", TEXT), ("event_serial_no", BIGINT),
)  # fmt: skip
DIGITS: Final = 19
_MESSAGE: Final = ("before", "after", "op", "source")
_OPERATIONS: Final = pa.array(["c", "r", "u", "d"])
_BRINGING: Final = pa.array(["c", "r", "u"])
"""The operations that there are, and those that have a row after."""

HEADER: Final = "reclock-timestamp"
"""Which transaction a message of a sink belongs to."""

_TRANSACTION: Final = (("id", TEXT), ("total_order", BIGINT), ("data_collection_order", BIGINT))
_STATED: Final = (pa.string(), pa.int64(), pa.int64(), pa.string())
"""What is said of transactions themselves: nothing, by records of rows."""


def transaction_fields() -> list[Field]:
    """Return what to decode of a message to know its transaction alone."""
    kinds = {TEXT: pa.string(), BIGINT: pa.int64()}
    arrow = pa.struct([pa.field(name, kinds[kind]) for name, kind in _TRANSACTION])
    made = Field("transaction", Record(_TRANSACTION), arrow, nullable=True)
    payload = Record((("transaction", made.type),))
    wrapped = pa.struct([pa.field("transaction", arrow)])
    return [made, Field("payload", payload, wrapped, nullable=True)]


def fields_of(columns: Sequence[Field], *, transactional: bool = False) -> list[Field]:
    """Return what to decode of a message whose rows have ``columns``."""
    row = Record(tuple((c.name, c.type) for c in columns))
    arrow_row = pa.struct([pa.field(c.name, c.arrow) for c in columns])
    source = Record(_SOURCE)
    kinds = {TEXT: pa.string(), BIGINT: pa.int64()}
    arrow_source = pa.struct([pa.field(name, kinds[kind]) for name, kind in _SOURCE])
    message = [
        Field("before", row, arrow_row, nullable=True),
        Field("after", row, arrow_row, nullable=True),
        Field("op", TEXT, pa.string(), nullable=True),
        Field("source", source, arrow_source, nullable=True),
        *(transaction_fields()[:1] if transactional else ()),
    ]
    payload = Record(tuple((f.name, f.type) for f in message))
    arrow_payload = pa.struct([pa.field(f.name, f.arrow) for f in message])
    return [*message, Field("payload", payload, arrow_payload, nullable=True)]


def key_fields_of(columns: Sequence[Field]) -> list[Field]:
    """Return what to decode of the key of a message: the key, or its payload."""
    bare = [c._replace(nullable=True) for c in columns]
    payload = Record(tuple((c.name, c.type) for c in columns))
    arrow = pa.struct([pa.field(c.name, c.arrow) for c in columns])
    return [*bare, Field("payload", payload, arrow, nullable=True)]


@dataclass(frozen=True)
class DebeziumDecode:
    """How messages become input; ``value`` decodes ``fields_of``, ``key`` ``key_fields_of``.

    ``types`` are those of the row's columns, of which the first ``len(required)`` are in the
    message; ``required`` says which of them must be there. ``key_at`` are those of the key.
    """

    types: tuple[pa.DataType, ...]
    value: Decoder
    required: tuple[tuple[str, bool], ...]
    key: Decoder | None = None
    key_at: tuple[int, ...] = ()
    included: tuple[tuple[int, str], ...] = ()
    whose: str = "partition"
    transaction: Decoder | None = None
    """Of ``transaction_fields``, if records belong to transactions."""

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the input of the envelope, one row for each record, in their order."""
        if self.transaction is not None:
            raw = raw.filter(raw.column("value").is_valid())
        faults = Faults(raw, self.whose)
        decoded = self.value.decode(raw.column("value"))
        if decoded.faults is not None:
            faults.add_each(decoded.faults, UNDECODABLE, "its value cannot be decoded")
        names = _MESSAGE if self.transaction is None else (*_MESSAGE, "transaction")
        message = _inside(names, decoded.columns)
        before, after = message["before"], message["after"]
        there = raw.column("value").is_valid()
        neither = pc.and_(there, pc.and_(before.is_null(), after.is_null()))
        deletion = pc.fill_null(pc.equal(message["op"], "d"), False)  # the key may be enough
        neither = pc.and_not(neither, deletion)
        faults.add(neither, NO_VALUE, "it has neither a row before nor one after")
        rows, old = after.flatten(), before.flatten()
        for column, (name, needed) in zip(rows, self.required, strict=True):
            if needed and column.null_count > after.null_count:
                missing = pc.and_(after.is_valid(), column.is_null())
                faults.add(missing, NO_VALUE, f'column "{name}" is NULL')
        operations = _operations(message["op"], before, after)
        _judge(operations, after, faults)
        rows = self._with_keys(rows, old, raw)
        for at in self.key_at:
            keyless = pc.and_(there, rows[at].is_null())
            faults.add(keyless, NO_KEY, f'its key has no "{self.required[at][0]}"')
        width = len(rows)
        rows += [pa.nulls(raw.num_rows, kind) for kind in self.types[width:]]
        for at, name in self.included:
            rows[at] = included(raw, name, self.types[at], faults)
        old += rows[width:]
        places = [] if self.transaction is None else self._transactions(message, decoded, raw)
        return named(
            [
                raw.column(0), raw.column(1), *rows, *old, before.is_valid(), after.is_valid(),
                operations, raw.column(0),
                *_positions(message["source"]), raw.column(1), *places, *faults.columns(),
            ]
        )  # fmt: skip

    def _transactions(
        self, message: Mapping[str, pa.Array], decoded: Decoded, raw: pa.RecordBatch
    ) -> list[pa.Array]:
        """Return which transaction each record belongs to, also of those that do not decode."""
        found = message["transaction"]
        assert self.transaction is not None
        if decoded.faults is not None:
            again = self.transaction.decode(raw.column("value")).columns
            found = _either(found, _inside(("transaction",), again)["transaction"])
        name, total, order = found.flatten()
        if "headers" in raw.schema.names and name.null_count:
            name = _either(name, _headers(raw.column("headers")))
        return [name, total, order, *(pa.nulls(raw.num_rows, kind) for kind in _STATED)]

    def _with_keys(
        self, rows: list[pa.Array], old: list[pa.Array], raw: pa.RecordBatch
    ) -> list[pa.Array]:
        """Return rows in which the columns of the key are filled from wherever they are."""
        keys: list[pa.Array] = []
        if self.key is not None:
            *bare, payload = self.key.decode(raw.column("key")).columns
            keys = [_either(a, b) for a, b in zip(payload.flatten(), bare, strict=True)]
        made = list(rows)
        for n, at in enumerate(self.key_at):
            made[at] = _either(rows[at], old[at])
            if keys:
                made[at] = _either(made[at], keys[n])
        return made


def _inside(names: Sequence[str], columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
    """Return the fields of messages: those of the payload, where there is one."""
    message = dict(zip((*names, "payload"), columns, strict=True))
    payload = message.pop("payload")
    if payload.null_count == len(payload):
        return message
    inside = dict(zip(names, payload.flatten(), strict=True))
    return {name: _either(inside[name], message[name]) for name in names}


def _headers(headers: pa.Array) -> pa.Array:
    """Return the transactions that messages of sinks have in their headers."""
    values: list[str | None] = []
    for some in headers.to_pylist():
        own = [h["value"] for h in some or () if h["key"] == HEADER and h["value"] is not None]
        values.append(own[-1].decode(errors="replace") if own else None)
    return pa.array(values, pa.string())


def _operations(said: pa.Array, before: pa.Array, after: pa.Array) -> pa.Array:
    """Return the operation of each message: what it says, else what its rows say."""
    if said.null_count == 0:
        return said
    made = pc.if_else(before.is_valid(), "u", "c")
    gone = pc.if_else(before.is_valid(), "d", pa.scalar(None, pa.string()))
    return _either(said, pc.if_else(after.is_valid(), made, gone))


def _judge(operations: pa.Array, after: pa.Array, faults: Faults) -> None:
    """Note the messages whose operation is not known, or needs a row after that is not there."""
    unknown = pc.invert(pc.is_in(operations, value_set=_OPERATIONS))
    unknown = pc.and_(operations.is_valid(), unknown)
    shown = pc.if_else(unknown, operations, pa.scalar(None, pa.string()))
    faults.add_each(shown, UNDECODABLE, "its operation is not known")
    bringing = pc.is_in(operations, value_set=_BRINGING)
    faults.add(pc.and_(bringing, after.is_null()), NO_VALUE, "it lacks the row after")


def _positions(source: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the three parts of every position; the first is NULL where there is none."""
    names = [name for name, _ in _SOURCE]
    found = dict(zip(names, source.flatten(), strict=True))
    first, second, third = _numbered(found["file"]), found["pos"], found["row"]
    lsn = pc.binary_join_element_wise(found["commit_lsn"], found["change_lsn"], "/")
    first, second = _either(first, lsn), _either(second, found["event_serial_no"])
    sequence = found["sequence"]
    if sequence.null_count < len(sequence):
        commits, lsns = _sequences(sequence)
        first = _either(first, pc.if_else(commits.is_valid(), "", pa.scalar(None, pa.string())))
        second, third = _either(second, commits), _either(third, lsns)
    zero = pa.scalar(0, pa.int64())
    return first, pc.fill_null(second, zero), pc.fill_null(third, zero)


def _numbered(files: pa.Array) -> pa.Array:
    """Return names of files whose numbers, at their end, have as many digits as any has."""
    if files.null_count == len(files):
        return files
    stem, number = pc.extract_regex(files, r"^(?P<stem>.*\.)(?P<number>\d+)$").flatten()
    padded = pc.utf8_lpad(number, DIGITS, "0")
    return _either(pc.binary_join_element_wise(stem, padded, ""), files)


def _sequences(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return both numbers of ``["last commit", "lsn"]``; NULL where it is not that."""
    pairs: list[tuple[int | None, int | None]] = []
    for text in texts.to_pylist():
        try:
            commit, lsn = json.loads(text)
            made = np.array([int(commit or 0), int(lsn)], np.int64)
            pairs.append((made[0], made[1]))
        except (TypeError, ValueError, OverflowError):
            pairs.append((None, None))
    return tuple(pa.array(column, pa.int64()) for column in zip(*pairs, strict=True))


def _either(first: pa.Array, second: pa.Array) -> pa.Array:
    """Return the first where it is there, else the second."""
    if first.null_count == 0:
        return first
    valid = first.is_valid().to_numpy(zero_copy_only=False)
    if not valid.any():
        return second
    both = pa.concat_arrays([first, second])
    at = np.arange(len(first))
    return both.take(pa.array(np.where(valid, at, at + len(first))))
