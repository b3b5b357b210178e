"""The envelope UPSERT: records with a key, of which the last one counts.

Rule. Records are ``<row…>, order, tombstone, code, message``; the key is some of the row's
columns. A key has at each time what its last record up to then says: by time, then by order,
then by place in the batch::

    a row         the row, in the place of what the key had
    a tombstone   nothing
    a fault       an error row (code, message), in the place of what the key had

The change at a time is −what the key had +what it has, nothing if they are equal; so several
records of one key at one time are one change. A record with NULL in its key is a lasting
error row: nothing can take its place. Diffs of records are taken as 1.

State: the result's own trace, arranged by the key, with one row per key at most, and that of
the keys that have a fault, with code and message. Cost: two look-ups per changed key; no scan.
Keeps P3, P5 and P9.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import diff_of, time_of
from reclock.arrangement.row import rows_equal
from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import ERROR_TYPES
from reclock.dataflow.grouping import group
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.records import in_order, stored
from reclock.errors import Corrupt

if TYPE_CHECKING:
    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s, Layout
    from reclock.arrangement.probe import Matches
    from reclock.dataflow.grouping import Groups
    from reclock.dataflow.trace import Trace

NULL_KEY: Final = "23502"
NOTHING, ROW, FAULT = range(3)


class Upserted(NamedTuple):
    """The change of the rows, that of the errors, and that of the faulty keys (keyed)."""

    delta: pa.RecordBatch
    errors: pa.RecordBatch
    faults: pa.RecordBatch


@dataclass(frozen=True)
class Upsert:
    """Records of rows of these types; ``names`` are those of the columns of the ``key``."""

    types: deltas.Types
    key: tuple[int, ...]
    names: tuple[str, ...]

    @cached_property
    def rows(self) -> Keying:
        """How the rows are arranged."""
        return Keying(self.types, self.key)

    @cached_property
    def faults(self) -> Keying:
        """How the keys that have a fault are arranged: by key, then code and message."""
        kinds = tuple(self.types[i] for i in self.key)
        return Keying((*kinds, *ERROR_TYPES), tuple(range(len(kinds))))

    def step(self, records: pa.RecordBatch, rows: Trace, faults: Trace) -> Upserted:
        """Return the changes of a tick, from the traces of the rows and of the faulty keys."""
        lasting, keyed = self._keyless(records)
        keyed = keyed.take(pa.array(in_order(keyed.column(len(self.types)))))
        user = [canonical(column) for column in deltas.rows_of(keyed)]
        keys = [user[i] for i in self.key]
        kh = deltas.key_hash(keys, keyed.num_rows)
        groups = group(kh, keys, time_of(keyed))
        if not len(groups.segments):
            return Upserted(deltas.empty(self.types), lasting, self.faults.layout.empty())
        first = pa.array(groups.first_rows)
        asked = pa.RecordBatch.from_arrays(
            [pa.array(kh).take(first), *(key.take(first) for key in keys)],
            schema=self.rows.layout.key_schema,
        )
        versions = self._versions(user, groups, rows.lookup(asked), faults.lookup(asked))
        time = time_of(keyed)[groups.segment_rows]
        delta, _ = versions.changes(ROW, time)
        errors, owner = versions.changes(FAULT, time)
        found = [key.take(owner) for key in self.rows.layout.keys(asked)]
        state = deltas.build([*found, *deltas.rows_of(errors)], *errors.columns[-2:])
        return Upserted(delta, deltas.union([lasting, errors]), self.faults.arrange(state))

    def _keyless(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return error rows for the records with NULL in their key, and the other records."""
        keys = [records.column(i) for i in self.key]
        if not any(key.null_count for key in keys):
            return deltas.empty(ERROR_TYPES), records
        message = pa.nulls(records.num_rows, pa.string())
        for name, key in zip(self.names, keys, strict=True):
            message = pc.coalesce(message, pc.if_else(pc.is_null(key), _no_key(name), None))
        null = pc.is_valid(message)
        lost = records.filter(null)
        *_, code, text, time, diff = lost.columns
        said = pc.is_valid(code)
        errors = [
            pc.if_else(said, code, NULL_KEY),
            pc.if_else(said, text, message.filter(null)),
        ]
        return deltas.build(errors, time, diff), records.filter(pc.invert(null))

    def _versions(
        self, user: list[pa.Array], groups: Groups, rows: Matches, faults: Matches
    ) -> _Versions:
        """Return what each key had before the tick, and has after each of its segments."""
        size, width = len(groups.groups), len(self.types)
        ends = np.append(groups.segments[1:], len(groups.order)) - 1
        last = pa.array(groups.order[ends])
        said = [column.take(last) for column in user]
        tombstone, code = said[width + 1], said[width + 2]
        kind = np.full(size + len(ends), NOTHING, np.int8)
        kind[size:] = np.where(
            pc.is_valid(code).to_numpy(zero_copy_only=False),
            FAULT,
            np.where(pc.fill_null(tombstone, False).to_numpy(zero_copy_only=False), NOTHING, ROW),
        )
        place = np.zeros(len(kind), np.int64)
        values = {}
        for which, keying, found, new in (
            (ROW, self.rows, rows, said[:width]),
            (FAULT, self.faults, faults, said[-2:]),
        ):
            owner, stored = _present(keying.layout, found)
            old = keying.columns(stored)[-len(new) :]
            values[which] = [pa.concat_arrays([a, b]) for a, b in zip(old, new, strict=True)]
            kind[owner] = which
            place[owner] = np.arange(len(owner))
            told = np.flatnonzero(kind[size:] == which)
            place[size + told] = len(owner) + told
        return _Versions(groups, kind, place, values)


@dataclass(frozen=True)
class _Versions:
    """What keys have: before the tick, one version per group, then one per segment.

    ``kind`` is what a version is, and ``place`` where it is among the ``values`` of its kind.
    """

    groups: Groups
    kind: npt.NDArray[np.int8]
    place: Int64s
    values: dict[int, list[pa.Array]]

    @cached_property
    def after(self) -> Int64s:
        """The version after each segment."""
        return len(self.groups.groups) + np.arange(len(self.groups.segments))

    @cached_property
    def before(self) -> Int64s:
        """The version before each segment."""
        return np.where(self.groups.is_first, self.groups.group_of, self.after - 1)

    def changes(self, which: int, time: Int64s) -> tuple[pa.RecordBatch, pa.Array]:
        """Return the change of what is of one kind, and the group of each of its updates."""
        one, other = self.kind[self.before] == which, self.kind[self.after] == which
        both = np.flatnonzero(one & other)
        if len(both):
            same = rows_equal(
                self._take(which, self.before[both]), self._take(which, self.after[both])
            )
            one[both[same]] = other[both[same]] = False
        taken, added = np.flatnonzero(one), np.flatnonzero(other)
        segment = np.concatenate((taken, added))
        version = np.concatenate((self.before[taken], self.after[added]))
        diff = np.repeat([-1, 1], [len(taken), len(added)])
        delta = deltas.build(self._take(which, version), time[segment], diff)
        return delta, pa.array(self.groups.group_of[segment])

    def _take(self, which: int, versions: Int64s) -> list[pa.Array]:
        at = pa.array(self.place[versions])
        return [column.take(at) for column in self.values[which]]


def _present(layout: Layout, found: Matches) -> tuple[Int64s, pa.RecordBatch]:
    """Return which keys asked for are there, and what is stored for each."""
    owner, there = stored(layout, found)
    if (diff_of(there) != 1).any() or (owner[1:] == owner[:-1]).any():
        message = "a key of an upsert source has more than one row"
        raise Corrupt(message)
    return owner, there


def _no_key(name: str) -> str:
    return f'null value in column "{name}" of the key'
