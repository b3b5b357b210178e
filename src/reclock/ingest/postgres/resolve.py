"""Changes that only the rows here can resolve: truncated tables, unchanged values.

Definition. The records of a table in a tick are in the order of the log. With the rows R that the
table has here before the tick::

    truncate at a place    takes away all of R and of what the records before it made
    unchanged value        that of the row that its key had there: of a record before it,
                           or of R; if the key changed, of the old key

so a tick computes the same as if each change had been applied alone. Cost: a truncation looks at
the whole table, which is what changes; unchanged values look up their keys, in this process.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.connectors.postgres.rows import CANNOT_HOLD
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of, errors_of, faults_of
from reclock.dataflow.operators.records import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from reclock.arrangement.layout import Int64s
    from reclock.connectors.postgres.rows import Rows, Unchanged
    from reclock.dataflow.changes import Stamped
    from reclock.engine.taken import StateBefore
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

PLACES = 2
_LOST = "an update left a value alone that is not known, because the row had an error"

GONE = -3
"""Where a record of a table with a key says that its row goes."""

Key = tuple[Any, ...]
Known: TypeAlias = "Callable[[set[Key]], Mapping[Key, list[Any] | None]]"
"""Gives the rows of keys, of those that have one."""


@dataclass(frozen=True)
class Bound:
    """Records of a table with their times; ``truncated`` the times of what is noted there."""

    rows: Rows
    times: Int64s
    truncated: tuple[Timestamp, ...] = ()


@dataclass(frozen=True)
class TakenTable:
    """What a tick takes of one table: ``width`` columns, told apart by ``key``."""

    item: ObjectId
    width: int
    key: tuple[int, ...]
    bound: tuple[Bound, ...] = ()
    runs: tuple[Stamped, ...] = ()
    failed: pa.RecordBatch | None = None
    """The change that a lasting failure is."""

    def changes(self, state: StateBefore) -> tuple[pa.RecordBatch, ...]:
        """Return the input of the table, from the state before the tick."""
        made: list[pa.RecordBatch] = []
        if self.bound:
            made = [deltas.union(list(self._deltas(state)))]
        return tuple(made if self.failed is None else [*made, self.failed])

    def _deltas(self, state: StateBefore) -> Iterator[pa.RecordBatch]:
        records = pa.concat_batches([b.rows.records for b in self.bound])
        times = np.concatenate([b.times for b in self.bound])
        columns = records.columns[PLACES:]
        if any(b.rows.unchanged for b in self.bound):
            cuts = [at for at, _, _ in self._cuts()]
            known = partial(looked_up, state, self)
            columns = filled(self.key, columns, self._noted(), known, cuts)
        diff: Any = np.ones(len(times), np.int64)
        if not self.key:
            diff = columns.pop()
        yield deltas.build(columns, times, diff)
        for number, (at, time, order) in enumerate(self._cuts()):
            if self.key:
                yield from self._tombstones(state, columns, at, time, order)
                continue
            begun = self._cuts()[number - 1][0] if number else 0
            gone = [column.slice(begun, at - begun) for column in columns]
            counts = np.asarray(diff)[begun:at]
            yield deltas.build(gone, np.full(at - begun, time, np.int64), -counts)
            if not number:
                yield from self._taken_back(state, time)

    def _noted(self) -> dict[int, Unchanged]:
        found: dict[int, Unchanged] = {}
        begun = 0
        for bound in self.bound:
            found |= {begun + at: one for at, one in bound.rows.unchanged.items()}
            begun += bound.rows.records.num_rows
        return found

    def _cuts(self) -> list[tuple[int, int, int]]:
        """Return where the table was truncated: before which record, when, and its order."""
        found, begun = [], 0
        for bound in self.bound:
            for (at, _, order), time in zip(bound.rows.truncated, bound.truncated, strict=True):
                found.append((begun + at, int(time), order))
            begun += bound.rows.records.num_rows
        return found

    def _tombstones(
        self, state: StateBefore, columns: list[pa.Array], at: int, time: int, order: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield one record for each key that may have a row: it goes."""
        keys = [[columns[k].slice(0, at) for k in self.key]]
        keying = state.shape.graph.arrangements[collection_of(self.item)].keying
        trace = state.traces[collection_of(self.item)]
        for batch in trace.snapshot(state.upper.back()):
            rows = keying.columns(batch)
            keys.append([rows[k] for k in self.key])
        wrong = faults_of(self.item)
        keying = state.shape.graph.arrangements[wrong].keying
        faulty = state.traces[wrong].snapshot(state.upper.back())
        keys += [list(keying.columns(batch)[: len(self.key)]) for batch in faulty]
        kinds = [column.type for column in columns]
        for some in keys:
            size = len(some[0])
            if not size:
                continue
            made = [pa.nulls(size, kind) for kind in kinds]
            for k, column in zip(self.key, some, strict=True):
                made[k] = column.cast(kinds[k]) if column.type != kinds[k] else column
            made[self.width] = pa.array(np.full(size, order, np.int64))
            made[self.width + 1] = pa.array(np.ones(size, np.bool_))
            yield deltas.build(made, np.full(size, time, np.int64), np.ones(size, np.int64))

    def _taken_back(self, state: StateBefore, time: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows and the errors that a table without a key has, as they go."""
        for name, before in ((collection_of(self.item), True), (errors_of(self.item), False)):
            keying = state.shape.graph.arrangements[name].keying
            for batch in state.traces[name].snapshot(state.upper.back()):
                whole = keying.restore(batch)
                size = whole.num_rows
                rows = deltas.rows_of(whole)
                types = state.shape.graph.arrangements[collection_of(self.item)].keying.types
                nothing = [pa.nulls(size, kind) for kind in types]
                fault = [pa.nulls(size, pa.string()), pa.nulls(size, pa.string())]
                made = [*rows, *fault] if before else [*nothing, *rows]
                counts = whole.column(whole.num_columns - 1).to_numpy()
                yield deltas.build(made, np.full(size, time, np.int64), -counts)


class _Filling:
    """Fills in the values that the log left out."""

    def __init__(
        self,
        key: tuple[int, ...],
        columns: list[pa.Array],
        unchanged: Mapping[int, Unchanged],
        known: Known,
        cuts: Sequence[int],
    ) -> None:
        self._cuts = cuts
        self._unchanged = unchanged
        self._keys: list[Key] = list(zip(*(columns[k].to_pylist() for k in key), strict=True))
        self._gone: list[bool] = columns[GONE].to_pylist()
        sources = self._sources()
        rows = known({one for one in sources.values() if isinstance(one, tuple)})
        touched = sorted({at for one in unchanged.values() for at in one.columns})
        values = {at: columns[at].to_pylist() for at in touched}
        codes, texts = columns[-2].to_pylist(), columns[-1].to_pylist()
        for place, source in sources.items():
            before = rows.get(source) if isinstance(source, tuple) else source
            if before is None or (isinstance(before, int) and codes[before] is not None):
                codes[place], texts[place] = codes[place] or CANNOT_HOLD, texts[place] or _LOST
                continue
            for at in unchanged[place].columns:
                values[at][place] = values[at][before] if isinstance(before, int) else before[at]
        made = list(columns)
        for at in touched:
            made[at] = pa.array(values[at], columns[at].type)
        made[-2], made[-1] = pa.array(codes, pa.string()), pa.array(texts, pa.string())
        self.columns = made

    def _sources(self) -> dict[int, int | Key | None]:
        """Return where each record takes its values from: a record, or a key of the rows."""
        found: dict[int, int | Key | None] = {}
        last: dict[Key, int | None] = {}
        emptied = False
        cuts = list(self._cuts)
        before: int | Key | None = None  # what the key of the last tombstone had
        for place, key in enumerate(self._keys):
            while cuts and cuts[0] <= place:
                cuts.pop(0)
                last.clear()
                emptied = True
            had = last.get(key, None if emptied else key)
            noted = self._unchanged.get(place)
            if noted is not None:
                found[place] = before if noted.moved else had
            if self._gone[place]:
                before = had
                last[key] = None
            else:
                last[key] = place
        return found


def filled(
    key: tuple[int, ...],
    columns: list[pa.Array],
    unchanged: Mapping[int, Unchanged],
    known: Known,
    cuts: Sequence[int] = (),
) -> list[pa.Array]:
    """Return records whose values that the log left out are filled in.

    ``known`` gives the rows that keys have before them; ``cuts`` are the records before which all
    rows go.
    """
    return _Filling(key, columns, unchanged, known, cuts).columns


def looked_up(state: StateBefore, table: TakenTable, keys: set[Key]) -> dict[Key, list[Any]]:
    """Return the rows that keys have in a state."""
    if not keys:
        return {}
    name = collection_of(table.item)
    keying = state.shape.graph.arrangements[name].keying
    kinds = [keying.types[k] for k in table.key]
    given = list(keys)
    columns = [canonical(pa.array([key[n] for key in given], kind)) for n, kind in enumerate(kinds)]
    hashed = pa.array(deltas.key_hash(columns, len(given)))
    asked = pa.RecordBatch.from_arrays([hashed, *columns], schema=keying.layout.key_schema)
    owner, there = stored(keying.layout, state.traces[name].lookup(asked))
    rows = [column.to_pylist() for column in keying.columns(there)]
    return {given[key]: [column[n] for column in rows] for n, key in enumerate(owner.tolist())}
