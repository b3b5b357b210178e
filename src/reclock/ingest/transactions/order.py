"""The order in which rows of transactions count, independent of the order of reading.

Definition. Rows of a transaction are ordered by ::

    number of the transaction, place in it (total_order), offset

so the last row of a key is that of the last change, also if its record came first, or through
another partition. Rows that say no place are in the order of their offsets. A *loose* row, one
that belongs to no transaction, follows the rows that are before it in its partition. Loose rows
of several partitions are in the order of their offsets, then of their partitions.

``Images`` are the keys that rows change; what becomes of a change that comes late is ``passed``.

Cost: vectorised over what is released. Keeps P3.

Tests: tests/ingest/test_record_order.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.row import rows_equal
from reclock.dataflow import delta as deltas
from reclock.dataflow.grouping import group
from reclock.dataflow.transaction_runs import LooseOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_MOST: Final = 1 << 62


def ranks(said: Mapping[str, pa.Array], number: Int64s, loose: Bools) -> Int64s:
    """Return the rank of each row: greater ones are later changes.

    >>> said = {"partition": pa.array([0, 0, 0]), "order": pa.array([5, 6, 7]),
    ...         "total_order": pa.array([2, 1, None]), "collection_order": pa.array([2, 1, None])}
    >>> ranks(said, np.array([1, 1, 0]), np.array([False, False, True])).tolist()
    [1, 0, 2]
    """
    offset = said["order"].to_numpy(zero_copy_only=False)
    partition = _filled(said["partition"], -1)
    by = np.lexsort(
        [offset, _filled(said["collection_order"]), _filled(said["total_order"]), number]
    )
    base = np.zeros(len(offset), np.int64)
    base[by] = np.arange(1, len(offset) + 1)
    if loose.any():
        base[loose] = 0
        along = np.lexsort([offset, partition])
        for where in np.split(along, np.flatnonzero(np.diff(partition[along])) + 1):
            base[where] = np.where(loose[where], np.maximum.accumulate(base[where]), base[where])
    made = np.empty(len(offset), np.int64)
    made[np.lexsort([partition, offset, loose, base])] = np.arange(len(offset))
    return made


@dataclass(frozen=True)
class Ranking:
    """Ranks that a row has by itself, and which sort as ``ranks`` does, where rows are orderly.

    That is: loose rows come before all others of their partition, and no row of a transaction is
    without a place. The rank of a row is its place, and where its transaction ``begins``.
    """

    begins: Mapping[str, int]
    loose: LooseOrder

    @classmethod
    def of(cls, bounds: Iterable[tuple[str, int, int]], loose: Loose | None) -> Ranking | None:
        """Return the ranks of transactions in their order, by first and last place.

        None if they do not fit into numbers.
        """
        order, at = LooseOrder(), 0
        if loose is not None:
            order = LooseOrder(loose.first, loose.least, loose.greatest - loose.least + 1)
            at = (loose.last - loose.first + 1) * order.partitions
        begins = {}
        for name, first, last in bounds:
            begins[name] = at - first
            at += last - first + 1
        fits = at <= _MOST and all(abs(begin) <= _MOST for begin in begins.values())
        return cls(begins, order) if fits else None


class Loose(NamedTuple):
    """The bounds of loose rows: offsets and partitions."""

    first: int
    last: int
    least: int
    greatest: int

    @classmethod
    def around(cls, some: Iterable[Loose]) -> Loose | None:
        """Return the bounds of all; None if there are none."""
        found = [*some]
        if not found:
            return None
        first, last, least, greatest = zip(*found, strict=True)
        return cls(min(first), max(last), min(least), max(greatest))


def _filled(column: pa.Array, value: int = 0) -> Int64s:
    made: Int64s = column.fill_null(value).to_numpy(zero_copy_only=False).astype(np.int64)
    return made


class Keys(NamedTuple):
    """Keys of rows, each with the number of its transaction and the place in it."""

    columns: list[pa.Array]
    number: Int64s
    place: Int64s

    def take(self, at: Int64s) -> Keys:
        """Return some of them."""
        some = pa.array(at)
        return Keys([c.take(some) for c in self.columns], self.number[at], self.place[at])


@dataclass(frozen=True)
class Images:
    """The keys that rows change: that of the row, and that of the row before if it is another."""

    after: Sequence[pa.Array]
    before: Sequence[pa.Array]
    has_before: Bools
    number: Int64s
    place: Int64s

    @property
    def moved(self) -> Bools:
        """Which rows have another key than before."""
        one, other = ([canonical(c) for c in some] for some in (self.before, self.after))
        made: Bools = self.has_before & _known(self.before) & ~rows_equal(one, other)
        return made

    def keys(self) -> Keys:
        """Return all keys that are changed; those with NULL are none."""
        new, old = np.flatnonzero(_known(self.after)), np.flatnonzero(self.moved)
        columns = [
            pa.concat_arrays([canonical(a.take(pa.array(new))), canonical(b.take(pa.array(old)))])
            for a, b in zip(self.after, self.before, strict=True)
        ]
        at = np.concatenate((new, old))
        return Keys(columns, self.number[at], self.place[at])

    def passed(self, by: Keys) -> tuple[Bools, Bools]:
        """Return of which rows the key, or the key before, has a later change among those."""
        made = []
        for which, columns in ((_known(self.after), self.after), (self.moved, self.before)):
            found = np.zeros(len(self.number), np.bool_)
            at = np.flatnonzero(which)
            own = [canonical(column.take(pa.array(at))) for column in columns]
            found[at] = _greatest(own, by)[: len(at)] > self.number[at]
            made.append(found)
        return made[0], made[1]


def latest(keys: Keys) -> Int64s:
    """Return where the last change of every key is."""
    if not len(keys.number):
        return np.empty(0, np.int64)
    by = np.lexsort([keys.place, keys.number])
    some = keys.take(by)
    size = len(by)
    groups = group(deltas.key_hash(some.columns, size), some.columns, np.zeros(size, np.int64))
    ends = np.append(groups.segments[1:], size) - 1
    made: Int64s = np.sort(by[groups.order[ends]])
    return made


def _greatest(own: list[pa.Array], by: Keys) -> Int64s:
    """Return the greatest number that each of some keys has among others; −1: none."""
    columns = [pa.concat_arrays([a, b]) for a, b in zip(own, by.columns, strict=True)]
    size, mine = len(columns[0]), len(own[0])
    if not size:
        return np.empty(0, np.int64)
    groups = group(deltas.key_hash(columns, size), columns, np.zeros(size, np.int64))
    owner = np.empty(size, np.int64)
    owner[groups.order] = np.repeat(groups.group_of, np.diff(np.append(groups.segments, size)))
    greatest = np.full(len(groups.groups), -1, np.int64)
    np.maximum.at(greatest, owner[mine:], by.number)
    made: Int64s = greatest[owner]
    return made


def _known(columns: Sequence[pa.Array]) -> Bools:
    """Return which keys have no NULL."""
    made: Bools = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        made &= column.is_valid().to_numpy(zero_copy_only=False)
    return made
