"""Rows of transactions in runs: as tasks stage them, and as a tick takes some of them.

Definition. A task that reads rows of the envelope ``transactions`` writes two runs::

    rows      the columns of the envelope debezium, divided as the source's input is, then
              code      which transaction of the piece a row belongs to; −1: none, it is *loose*
              total_order, collection_order
    summary   for each transaction of the piece, and each partition: how many rows, at which
              places (``total_order``), the greatest ``collection_order``, first and last offset

A row at a place of its transaction that the piece has already is left out: the first counts. The
partition of a loose row is −1 − p, as it is in the graph (``transaction_rows.closed``).

When some transactions are released, ``Chosen`` says which codes are meant, at which time each is,
and which places are left out because another piece has them. Rows get a rank that needs no other
row: where the transaction begins in the order of all that are released, and the place in it. It
sorts as that of ``transaction_order.ranks``.

Cost: vectorised over the rows of a piece; the driver reads summaries alone.
Tests: tests/dataflow/test_transaction_runs.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.layout import Layout, by_hash
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import (
    DEBEZIUM,
    TRANSACTIONS,
    envelope_columns,
    envelope_fields,
    input_types,
)
from reclock.dataflow.keying import Keying

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.arrangement.layout import Int64s

LOOSE: Final = -1
EXTRA: Final = (pa.int64(), pa.int64(), pa.int64())
"""Code, total_order and collection_order, after the columns of the envelope debezium."""

SUMMARY: Final = Keying(
    (
        pa.int64(), pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.int64(),
        pa.large_binary(), pa.int64(), pa.int64(), pa.int64(),
    ),
    (0,),
)  # fmt: skip
"""Code, name, partition, rows, rows without a place, first and last place, places, greatest
collection_order, first and last offset."""

FEW: Final = 64
"""So many places are a list; more are bits, if that is shorter."""

_ORDER: Final = 3
"""The order is the third column from the end, before code and message."""


@dataclass(frozen=True)
class TransactionRuns:
    """How rows of these types are staged; the graph divides them as ``entry`` says."""

    row: deltas.Types
    entry: Keying

    @cached_property
    def keying(self) -> Keying:
        """How staged rows lie."""
        return Keying((*input_types(DEBEZIUM, self.row), *EXTRA), self.entry.key)

    def staged(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return rows, and what they are a summary of, as updates of their arrangements."""
        said = envelope_columns(TRANSACTIONS, self.row, records)
        known = said["transaction"].dictionary_encode()
        code = known.indices.fill_null(LOOSE).to_numpy(zero_copy_only=False).astype(np.int64)
        place, placed = _numbers(said["total_order"])
        of_table, counted = _numbers(said["collection_order"])
        last = np.full(len(known.dictionary) + 1, -1, np.int64)  # also that of loose rows
        np.maximum.at(last, code[counted], of_table[counted])
        keep = _first_at_place(code, place, placed)
        here = pa.array(np.flatnonzero(keep))
        loose = pa.array(code == LOOSE)
        partition = pc.subtract(pa.scalar(-1, pa.int32()), said["partition"])
        names = [f.name for f in envelope_fields(DEBEZIUM, self.row)]
        given = {**said, "partition": pc.if_else(loose, partition, said["partition"])}
        columns = [
            *deltas.rows_of(records)[: len(self.row)], *(given[name] for name in names),
            pa.array(code), said["total_order"], said["collection_order"],
        ]  # fmt: skip
        size = len(here)
        rows = deltas.build(
            [column.take(here) for column in columns],
            np.zeros(size, np.int64), np.ones(size, np.int64),
        )  # fmt: skip
        parts = _numbers(said["partition"])[0][keep]
        offset = _numbers(said["order"])[0][keep]
        groups = _Groups(code[keep], parts, place[keep], placed[keep], offset)
        summary = groups.summary(known.dictionary, last)
        return by_hash(self.keying.arrange(rows)), by_hash(SUMMARY.arrange(summary))

    def restored(self, delta: pa.RecordBatch, names: pa.Array) -> pa.RecordBatch:
        """Return staged rows as statements of the envelope, as they were read."""
        width = len(self.row)
        columns = deltas.rows_of(delta)
        code = columns[-3]
        loose = pc.equal(code, LOOSE)
        fields = envelope_fields(DEBEZIUM, self.row)
        said = {f.name: column for f, column in zip(fields, columns[width:-3], strict=True)}
        own = pc.subtract(pa.scalar(-1, pa.int32()), said["partition"])
        said["partition"] = pc.if_else(loose, own, said["partition"])
        at = pc.if_else(loose, pa.scalar(None, pa.int64()), code)
        said |= {
            "transaction": names.take(at), "total_order": columns[-2],
            "collection_order": columns[-1],
        }  # fmt: skip
        whole = [
            said[f.name] if f.name in said else pa.nulls(delta.num_rows, f.type)
            for f in envelope_fields(TRANSACTIONS, self.row)
        ]
        made = [*columns[:width], *whole]
        return pa.RecordBatch.from_arrays(made, names=[f"c{i}" for i in range(len(made))])


def _numbers(column: pa.Array) -> tuple[Int64s, Any]:
    """Return numbers, 0 where there are none, and where there are."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return values, column.is_valid().to_numpy(zero_copy_only=False)


def _first_at_place(code: Int64s, place: Int64s, placed: Any) -> Any:
    """Return which rows are the first at their place of a transaction, or have none."""
    keep = np.ones(len(code), np.bool_)
    some = np.flatnonzero(placed & (code != LOOSE))
    by = some[np.lexsort([place[some], code[some]])]  # stable: the first stays the first
    same = (code[by][1:] == code[by][:-1]) & (place[by][1:] == place[by][:-1])
    keep[by[1:][same]] = False
    return keep


@dataclass(frozen=True)
class _Groups:
    """The rows of a piece by transaction and partition."""

    code: Int64s
    partition: Int64s
    place: Int64s
    placed: Any
    offset: Int64s

    def summary(self, names: pa.Array, last: Int64s) -> pa.RecordBatch:
        """Return a row for each group; ``last`` are the greatest collection orders by code."""
        by = np.lexsort([self.offset, self.partition, self.code])
        code, partition = self.code[by], self.partition[by]
        new = (np.diff(code, prepend=-2) != 0) | (np.diff(partition, prepend=-1) != 0)
        new[:1] = True
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(by))
        placed = np.add.reduceat(self.placed[by].astype(np.int64), starts)
        sorted_places = self.place[
            np.lexsort([self.place, ~self.placed, self.partition, self.code])
        ]
        spans = list(zip(starts.tolist(), placed.tolist(), strict=True))
        places = [sorted_places[start : start + count] for start, count in spans]
        whose = code[starts]
        which = pa.array(np.where(whose == LOOSE, 0, whose), mask=whose == LOOSE)
        columns = [
            pa.array(whose),
            names.take(which) if len(names) else pa.nulls(len(starts), pa.string()),
            pa.array(partition[starts].astype(np.int32)),
            pa.array(ends - starts),
            pa.array(ends - starts - placed),
            pa.array([int(some[0]) if len(some) else 0 for some in places], pa.int64()),
            pa.array([int(some[-1]) if len(some) else -1 for some in places], pa.int64()),
            pa.array([packed(some) for some in places], pa.large_binary()),
            pa.array(last[whose]),
            pa.array(self.offset[by][starts]),
            pa.array(self.offset[by][ends - 1]),
        ]
        size = len(starts)
        return deltas.build(columns, np.zeros(size, np.int64), np.ones(size, np.int64))


def packed(places: Int64s) -> bytes:
    """Return sorted, distinct places as bytes: no bytes if the places have no gap.

    >>> some = np.array([3, 5, 9])
    >>> len(packed(some)), packed(np.arange(4, 9)), unpacked(3, 9, 3, packed(some)).tolist()
    (24, b'', [3, 5, 9])
    """
    if not len(places):
        return b""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == len(places):
        return b""
    if _are_listed(first, last, len(places)):
        return places.astype("<i8").tobytes()
    bits = np.zeros(last - first + 1, np.bool_)
    bits[places - first] = True
    made: bytes = np.packbits(bits).tobytes()
    return made


def _are_listed(first: int, last: int, count: int) -> bool:
    """Return whether so many places are a list, and not bits."""
    return count <= FEW or (last - first) // 8 + 1 >= 8 * count


def unpacked(first: int, last: int, count: int, data: bytes) -> Int64s:
    """Return ``count`` places from the first to the last, of what ``packed`` made of them."""
    if not data:
        return np.arange(first, last + 1, dtype=np.int64)
    if _are_listed(first, last, count):
        return np.frombuffer(data, "<i8").astype(np.int64)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=last - first + 1)
    made: Int64s = np.flatnonzero(bits) + first
    return made


class LooseOrder(NamedTuple):
    """How loose rows are ranked: by offset, then by partition, before all others."""

    offset: int = 0
    partition: int = 0
    partitions: int = 1

    def ranks(self, offset: Int64s, partition: Int64s) -> Int64s:
        """Return the ranks of loose rows."""
        return (offset - self.offset) * self.partitions + partition - self.partition


@dataclass(frozen=True)
class Chosen:
    """Which rows of a staged run are meant: those with some codes, in order, each at a time.

    ``begins`` is added to a place to get the rank of a row. ``without`` are places that are left
    out, by code. ``loose`` is the order of loose rows, whose code is the first then.
    """

    codes: Int64s
    times: Int64s
    begins: Int64s
    without: Mapping[int, Int64s] = field(default_factory=dict)
    loose: LooseOrder | None = None

    def stored(self, layout: Layout) -> Layout:
        """Return the layout of staged rows that become records of a layout."""
        width = len(layout.key) + len(layout.value)
        extra = (pa.field(f"c{width + at}", kind) for at, kind in enumerate(EXTRA))
        return Layout(layout.key, (*layout.value, *extra))

    def records(self, batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
        """Return what is meant of staged rows, as records of a layout."""
        code = batch.column(batch.num_columns - 5).to_numpy()
        place = _numbers(batch.column(batch.num_columns - 4))[0]
        at = np.minimum(np.searchsorted(self.codes, code), len(self.codes) - 1)
        keep = self.codes[at] == code
        for some, places in self.without.items():
            here = code == some
            keep[here] &= ~np.isin(place[here], places)
        rank = self.begins[at] + place
        order = batch.num_columns - 5 - _ORDER
        if self.loose is not None:
            free = code == LOOSE
            offset = batch.column(order).to_numpy(zero_copy_only=False)
            partition = -1 - batch.column(1).to_numpy(zero_copy_only=False).astype(np.int64)
            rank = np.where(free, self.loose.ranks(offset, partition), rank)
        columns = [*batch.columns[:-5], pa.array(self.times[at]), batch.columns[-1]]
        columns[order] = pa.array(rank)
        made = pa.RecordBatch.from_arrays(columns, schema=layout.schema)
        return made.filter(pa.array(keep))
