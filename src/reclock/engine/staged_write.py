"""A write of more rows than are kept in memory: on disk piece by piece, until it has a time.

``add`` arranges and checks some rows and writes them as a run of a segment; ``commit`` names all
runs in one append, with the one time that the write has: it stands in the references
(``RunRef.time``), so no byte is written twice. Before that nothing names the segments: their stem
is in flight, and what a crash leaves is removed as garbage.

The key of each piece is looked for in the pieces before it when it is added, and in the table when
the write is committed, under the lock.

Unique indexes are checked in the same way: the keys of each piece are written too, for the pieces
after it, and are garbage when the write is committed.

Cost: memory for one piece. Under the lock: a probe of the keys, if the table has rows; the append.

Tests: tests/session/test_staged_copy.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final
from weakref import finalize

from reclock.arrangement.cache import process_cache
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.engine.constraints import (
    check_conditions,
    check_keys,
    check_not_null,
    check_staged,
    fitted,
    keys_only,
    net_keys,
)
from reclock.engine.write import arranged, folded
from reclock.errors import InvalidValue
from reclock.failpoints import hit
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.arrangement.run import Run, RunRef
    from reclock.catalog.item import Table
    from reclock.catalog.unique import UniqueKey
    from reclock.engine.core import Core

_numbers: Final = count(1)
_UNKNOWN: Final = Timestamp(0)
"""The time in the bytes; the reference has the one that counts."""


class StagedWrite:
    """The rows that one statement adds to a table."""

    def __init__(self, core: Core, table: Table) -> None:
        self._core = core
        self._table = table
        self._keys = core.world.catalog.unique_keys(table)
        self._refs: list[RunRef] = []
        self._by_key: dict[UniqueKey, list[RunRef]] = {k: [] for k in self._keys if k.index}
        self._stem = f"copy-{next(_numbers)}"
        stems = {self._stem, self._key_stem}
        self._release = finalize(self, core.in_flight.difference_update, stems)
        core.in_flight.update(stems)

    @property
    def _key_stem(self) -> str:
        return f"keys-of-{self._stem}"

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Check some rows and write them to disk."""
        table = self._table
        check_not_null(table, columns)
        given = fitted(table, columns)
        check_conditions(self._core.engine, table, given)
        batch = arranged(table, given, _UNKNOWN, 1)
        check_keys(table, self._keys, None, batch, given)
        for key in self._keys:
            check_staged(table, key, batch, self._runs_by(key), given)
        per_batch = rows_per_batch(batch.num_rows, batch.nbytes)
        description = Description(at(_UNKNOWN), at(_UNKNOWN.step()), at(0))
        with SegmentWriter(self._core.segments, self._stem, steadily=True) as writer:
            layout = table.keying.layout
            writer.add(str(table.id), layout, [batch], description, batch_rows=per_batch)
            self._refs += writer.finish()
        for key, refs in self._by_key.items():
            with SegmentWriter(self._core.segments, self._key_stem, durable=False) as writer:
                writer.add(
                    key.name, keys_only(table, key), [net_keys(table, key, batch)], description
                )
                refs.extend(writer.finish())

    def commit(self, table: Table) -> Timestamp:
        """Make all rows visible at one time; return it. Hold the lock.

        ``table`` is the table as it is now: rows were checked against what it was.
        """
        core, staged = self._core, self._table
        now = (table.id, table.columns, table.key, table.checks)
        then = (staged.id, staged.columns, staged.key, staged.checks)
        if now != then or core.world.catalog.unique_keys(table) != self._keys:
            message = f'table "{table.name}" was altered or made again meanwhile'
            raise InvalidValue(message, code="55000", hint="copy again")
        with core.writing():
            timeline = table.timeline
            assert timeline is not None
            state = core.state(timeline)
            closing = core.flights.closing(timeline)
            state = folded(core, state)
            for run in self._runs():
                for batch in run if state.is_filled(table.id) else ():
                    check_keys(table, self._keys, state, batch, ())
            given = state.write_time(core.clock.now_ms(), closing)
            time = given[1]
            description = Description(at(time), at(time.step()), at(0))
            runs = [
                (table.id, replace(ref, description=description, time=time)) for ref in self._refs
            ]
            appends, after = state.written(given, runs)
            hit("write.append.before")
            core.publish(core.world, appends, after)
            hit("write.append.after")
            self._release()
            if self._by_key:
                core.collect_garbage()
            return time

    def _runs_by(self, key: UniqueKey) -> tuple[Run, ...]:
        """Return what was added before, by a key."""
        if key.index is None:
            return self._runs()
        layout = keys_only(self._table, key)
        return process_cache().open_all(self._core.segments, self._by_key[key], layout)

    def _runs(self) -> tuple[Run, ...]:
        layout = self._table.keying.layout
        return process_cache().open_all(self._core.segments, self._refs, layout)
