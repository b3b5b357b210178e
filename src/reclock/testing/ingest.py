"""The smallest engine that keeps the promises of reclocking: one source, one output.

A tick, in durable order: probe → mint (durable remap) → read exactly the bound ranges →
publish (durable output) → compact. It is the reference for the order of durable steps,
the subject of the crash table (tests/remap/test_crash.py), and what ``make demo`` shows.
It needs no Spark: rows are text, and the output is a collection of the store.

Restart is construction: everything it needs is the store's remap and the output's upper;
it resumes at ``R(upper − 1)`` and reads nothing before that again. An output that begins
after its bindings were compacted is readable from the bindings' since on, as all others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from reclock.durable.remap_store import RemapStore
from reclock.durable.store import Append, StoredUpdate
from reclock.failpoints import hit
from reclock.ids import CollectionId, ObjectId
from reclock.remap.batch import ranges
from reclock.remap.codec import KAFKA
from reclock.remap.mint import Minter
from reclock.remap.resume import resume
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from reclock.clock import Clock
    from reclock.durable.store import Store
    from reclock.remap.batch import Range
    from reclock.remap.trace import Frontier, Remap
    from reclock.testing.scripted import ScriptedSource
    from reclock.time.position import KafkaPosition
    from reclock.time.timestamp import Timestamp

ROW_VERSION = 1


class Row(NamedTuple):
    """A published record and where it came from."""

    partition: int
    offset: int
    data: str


class ScriptedIngest:
    """Ingests a scripted source into the collection ``output/<name>``."""

    def __init__(
        self,
        store: Store,
        source: ScriptedSource,
        clock: Clock,
        *,
        name: str = "u1",
        interval: int = 1_000,
        window: int = 60_000,
    ) -> None:
        self._store = store
        self._source = source
        self._clock = clock
        self._window = window
        self._output = CollectionId(f"output/{name}")
        self._minter = Minter(name, RemapStore(store, ObjectId(name), KAFKA), interval)
        self._upper = store.open(self._output, ROW_VERSION).upper
        self._forget(self.remap.since)

    @property
    def remap(self) -> Remap[KafkaPosition]:
        """The durable remap as last seen."""
        return self._minter.remap

    @property
    def upper(self) -> Frontier:
        """The output is complete before this."""
        return self._upper

    def tick(self) -> Frontier:
        """Run one step from probe to compaction; return the output's new upper."""
        remap = self._minter.mint(self._clock.now_ms(), self._source.probe())
        self.catch_up(remap)
        self._compact()
        return self._upper

    def catch_up(self, remap: Remap[KafkaPosition]) -> None:
        """Read what ``remap`` binds and the output lacks, and publish it at its times."""
        if remap.upper.precedes(self._upper):
            return
        bound = ranges(remap, sorted(self._source.log), resume(remap, self._upper))
        updates = tuple(update for each in bound for update in self._read(each))
        hit("ingest.publish.before")
        mismatch = self._store.append([Append(self._output, updates, self._upper, remap.upper)])
        hit("ingest.publish.after")
        self._upper = remap.upper if mismatch is None else mismatch.current_upper
        self._forget(remap.since)

    def rows_at(self, time: Timestamp) -> dict[Row, int]:
        """Return the output as of ``time``."""
        rows = self._store.snapshot(self._output).accumulate(time)
        return {Row(*json.loads(data)): count for data, count in rows.items()}

    def times(self) -> dict[Row, Timestamp]:
        """Return the time each published row appears at."""
        updates = self._store.snapshot(self._output).updates
        return {Row(*json.loads(u.data)): u.time for u in updates}

    def _read(self, bound: Range) -> list[StoredUpdate]:
        records = self._source.read(int(bound.part), bound.start, bound.stop)
        return [
            StoredUpdate(json.dumps([bound.part, offset, data]), bound.time, 1)
            for offset, data in enumerate(records, bound.start)
        ]

    def _compact(self) -> None:
        """Advance since to upper − window: the output first, then the bindings under it."""
        last = self._last_complete()
        if last is None or last <= self._window:
            return
        since = last.back(self._window)
        self._forget(since)
        self._minter.compact(since)

    def _forget(self, since: Timestamp) -> None:
        """Let the output be read from ``since`` on: never earlier than its bindings are."""
        state = self._store.state(self._output)
        if state.since.less_than(since) and not state.upper.less_equal(since):
            self._store.compact(self._output, Antichain.of(since))

    def _last_complete(self) -> Timestamp | None:
        """Return the greatest time below upper; none before the first or after the last."""
        if self._upper.is_closed or self._upper.element() == 0:
            return None
        return self._upper.element().back()
