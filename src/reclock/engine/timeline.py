"""The state of one timeline: its oracle, pending writes, arrangements and graph.

There is one such state for each *pace* (``time.pace``). That of the timeline itself has what
follows. The others, of sources that bring their times and of views over them, have neither an
oracle nor tables, so W is U there; and U stays where it is when objects come and go, because
which times are complete is not ours to say.

A frozen value. Four steps change it, each one durable append::

    written     a write to tables:      W, oracle
    ticked      a tick:                 U, W, oracle; runs come, writes are retired
    reshaped    objects come and go:    U, W, oracle; arrangements come and go
    joined      the same at no time:    arrangements come, complete before U, and go

U, the upper of all maintained objects, and W, the frontier of tables, satisfy U ≤ W, and
U = W when nothing is pending. Each step applies its time to the oracle in the same append,
so ``read_ts ≥ U − 1``: a strict read never finds its time forgotten, nor a since beyond it.

Tests: tests/engine/test_tick.py, test_write.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from reclock.catalog.item import Source
from reclock.dataflow.graph import Limits, collection_of
from reclock.durable.manifest_store import ManifestStore
from reclock.durable.oracle_store import OracleRecord, OracleStore
from reclock.engine.arrangements import FIRST, Arrangements, Traces, layouts_of
from reclock.engine.shape import Shape
from reclock.engine.source_bindings import load as load_bindings
from reclock.engine.write_log import Wal
from reclock.ids import ObjectId
from reclock.time import oracle as rules
from reclock.time.antichain import join_all
from reclock.time.frontier import BEGINNING, CLOSED, Bounds, at
from reclock.time.pace import Own, timeline_of
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp, round_up

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store as Segments
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Index, MaterializedView, RelationItem
    from reclock.dataflow.graph import ArrangementId
    from reclock.durable.store import Append, Store
    from reclock.engine.arrangements import Runs, Swap
    from reclock.engine.source_bindings import Bindings
    from reclock.engine.taken import Taken
    from reclock.time.frontier import Frontier
    from reclock.time.pace import Pace
    from reclock.time.timeline import Timeline

    Untils = Mapping[ArrangementId, int | None]
    """Pending arrangements of which it changes until when they are kept; None: for ever."""


@dataclass(frozen=True)
class TimelineState:
    """One timeline at one moment; ``segments`` is where its runs are."""

    pace: Pace
    oracle: rules.OracleState
    wal: Wal
    arrangements: Arrangements
    shape: Shape
    segments: Segments
    sinces: Mapping[ObjectId, Frontier] = field(default_factory=dict)
    """From when on each object can be read (``history``)."""
    bindings: Mapping[ObjectId, Bindings] = field(default_factory=dict)
    """Of each source."""
    ahead: Mapping[ArrangementId, int] = field(default_factory=dict)
    """Until when pending arrangements are written that are being renewed (``expirations``)."""

    @classmethod
    def open(
        cls,
        store: Store,
        segments: Segments,
        pace: Pace,
        catalog: Catalog,
        transients: Iterable[MaterializedView] = (),
    ) -> TimelineState:
        """Return what is durable of a pace; it begins at 0 if there is nothing.

        Of ``transients`` only those count whose rows are there.
        """
        manifest = ManifestStore(store).open(manifest_of(pace))
        stored = rules.OracleState()
        if isinstance(pace, Own):
            arranged = Arrangements.read(manifest, own=True)
            wal = Wal.without_tables()
        else:
            arranged = Arrangements.read(manifest)
            wal = Wal.open(store, pace)
            record = OracleStore(store).load_all().get(pace)
            if record is not None:
                stored = rules.OracleState(record.read_ts, record.write_ts)
        there = [view for view in transients if collection_of(view.id) in arranged.runs]
        shape = Shape.of(catalog, pace, there)
        bound = load_bindings(store, catalog.of_pace(pace))
        return cls(pace, stored, wal, arranged, shape, segments, bindings=bound)

    @property
    def timeline(self) -> Timeline:
        """What its times mean."""
        return timeline_of(self.pace)

    @property
    def is_own(self) -> bool:
        """Whether its times are not given by the system."""
        return isinstance(self.pace, Own)

    @property
    def is_complete(self) -> bool:
        """Whether nothing of it will ever change: the source that it moves with has ended."""
        return (
            self.is_own
            and bool(self.bindings)
            and all(bound.remap.is_sealed for bound in self.bindings.values())
        )

    @property
    def frontier(self) -> Frontier:
        """The upper as others see it: ``{}`` if it has ended."""
        if self.is_complete:
            return CLOSED
        return self.arrangements.upper

    @property
    def upper(self) -> Timestamp:
        """U: the first time that is not complete."""
        return self.arrangements.upper.element()

    @property
    def table_upper(self) -> Timestamp:
        """W: the first time that can be written."""
        return self.upper if self.is_own else self.wal.upper.element()

    @property
    def settled(self) -> bool:
        """Whether nothing is pending: all that was written is in the arrangements."""
        return self.upper == self.table_upper

    @cached_property
    def traces(self) -> Traces:
        """The arrangements, to look things up in."""
        layouts = layouts_of(self.shape.graph)
        upper = CLOSED if self.is_complete else None
        if self.is_own and self.upper == FIRST:
            upper = at(FIRST.step())  # what is there before the first tick, at time 0
        return Traces(self.arrangements, layouts, self.segments, upper)

    def limited(self, dropped: Counter[ArrangementId]) -> Shape:
        """Return the shape that writes pending arrangements as far as they are kept."""
        untils = {**self.arrangements.untils, **self.ahead}
        return replace(self.shape, limits=Limits(untils, dropped)) if untils else self.shape

    def bounds(self, item: RelationItem | Index) -> Bounds:
        """Return the times at which an object can be read."""
        return Bounds(item.name, self.sinces[item.id], self.frontier)

    def kept(self) -> Iterator[ObjectId]:
        """Yield the objects with rows whose arrangements are all there."""
        for item, arrangements in self.shape.kept.items():
            if all(arrangement in self.arrangements.runs for arrangement in arrangements):
                yield item

    def stored_since(self, item: ObjectId) -> Frontier:
        """Return from when on the runs of an object, and its bindings, tell times apart."""
        since = join_all(map(self.arrangements.since, self.shape.kept[item]), BEGINNING)
        bindings = self.bindings.get(item)
        return since if bindings is None else since.join(at(bindings.remap.since))

    def named_segments(self) -> Iterator[str]:
        """Yield the segments that hold runs, pending writes, or rows of sources that wait."""
        yield from self.arrangements.segments()
        for bound in self.bindings.values():
            yield from bound.segments
        for entry in self.wal.pending:
            if entry.run.segment is not None:
                yield entry.run.segment

    def stem(self, step: str, time: Timestamp) -> str:
        """Return how files of a step of this timeline are named."""
        digest = blake2b(str(self.pace).encode(), digest_size=4).hexdigest()
        return f"{step}-{digest}-{time}"

    def is_filled(self, table: ObjectId) -> bool:
        """Return whether a table has had rows."""
        runs = self.arrangements.runs.get(collection_of(table), ())
        return bool(self.wal.of_table(table)) or any(ref.rows for ref in runs)

    # Times.

    def write_time(
        self, now_ms: int, closing: Timestamp | None = None
    ) -> tuple[rules.OracleState, Timestamp]:
        """Return the time of the next write, and the oracle that has handed it out.

        It is after ``closing``, which a tick under way closes.
        """
        now = max(now_ms, self.table_upper) if self.timeline == EPOCH_MS else self.table_upper
        return rules.write(self.oracle, now if closing is None else max(now, closing.step()))

    def tick_time(
        self, now_ms: int, interval: int = 1, *, staged: bool = False, own: Timestamp | None = None
    ) -> Timestamp | None:
        """Return the time that the next tick closes; None if there is nothing to close.

        That is now, rounded up to ``interval``, or the time of what is pending, if that is
        later. A timeline without a clock moves only when something was written, or is
        ``staged`` to be bound, or with its sources that bring their times: now is then the last
        time that is complete in all of them, ``own``.
        """
        if self.timeline == EPOCH_MS:
            now = round_up(max(now_ms, 0), interval)
        else:
            now = Timestamp(max(self.upper - 1, own or 0))
        if now < self.upper and self.settled and (self.timeline == EPOCH_MS or not staged):
            return None
        return now.join(self.table_upper)

    def _applied(self, time: Timestamp) -> rules.OracleState:
        """Return the oracle for which all before and at ``time`` is visible."""
        known = self.oracle
        return rules.OracleState(known.read_ts.join(time), known.write_ts.join(time))

    # Steps.

    def written(
        self, given: tuple[rules.OracleState, Timestamp], runs: Sequence[tuple[ObjectId, RunRef]]
    ) -> tuple[list[Append], TimelineState]:
        """Return a write of ``runs`` at a time that ``write_time`` gave."""
        state, time = given
        append, wal = self.wal.write(time, runs)
        return [append], replace(self, wal=wal, oracle=replace(state, read_ts=time))

    def ticked(
        self,
        time: Timestamp,
        added: Runs,
        swaps: tuple[Swap, ...] = (),
        taken: Mapping[ObjectId, Taken] | None = None,
        *,
        untils: Untils | None = None,
    ) -> tuple[list[Append], TimelineState]:
        """Return a tick that closes ``time``: what was pending, and ``taken``, became ``added``."""
        appends, after = self._moved(
            time.step(), self.shape, added, frozenset(), swaps=swaps, untils=untils
        )
        bindings = dict(self.bindings)
        for item, some in (taken or {}).items():
            more, bindings[item] = self.bindings[item].taken(some)
            appends += more
        return appends, replace(after, bindings=bindings)

    def arranged(
        self, shape: Shape, added: Runs, removed: frozenset[ArrangementId], untils: Untils
    ) -> TimelineState:
        """Return this state in another shape, with the runs that it has then: not published."""
        runs = {a: refs for a, refs in self.arrangements.runs.items() if a not in removed}
        kept = {**self.arrangements.untils, **untils}
        limits = {a: until for a, until in kept.items() if until is not None}
        arrangements = replace(self.arrangements, runs={**runs, **added}, untils=limits)
        return replace(self, shape=shape, arrangements=arrangements)

    def reshaped(
        self,
        shape: Shape,
        added: Runs,
        removed: frozenset[ArrangementId],
        untils: Untils | None = None,
    ) -> tuple[list[Append], TimelineState]:
        """Return the step in which objects come and go; nothing may be pending."""
        upper = self.upper if self.is_own else self.table_upper.step()
        appends, after = self._moved(upper, shape, added, removed, untils=untils)
        ahead = {a: until for a, until in self.ahead.items() if a not in removed}
        return appends, replace(after, ahead=ahead)

    def joined(
        self, shape: Shape, added: Runs, removed: frozenset[ArrangementId]
    ) -> tuple[list[Append], TimelineState]:
        """Return the step in which objects come and go and no time is closed.

        What is pending stays so, but for that of tables which are gone. ``added`` is complete
        before U.
        """
        appends, after = [], replace(self, shape=shape)
        if added or removed:
            manifest, arrangements = self.arrangements.changed(at(self.upper), added, removed)
            ahead = {a: until for a, until in self.ahead.items() if a not in removed}
            after = replace(after, arrangements=arrangements, ahead=ahead)
            appends.append(manifest)
        gone = {entry.table for entry in self.wal.pending} - shape.graph.tables.keys()
        if gone:
            retired, wal = self.wal.without(gone)
            after = replace(after, wal=wal)
            appends.append(retired)
        return appends, after

    def _moved(
        self,
        upper: Timestamp,
        shape: Shape,
        added: Runs,
        removed: frozenset[ArrangementId],
        *,
        swaps: tuple[Swap, ...] = (),
        untils: Untils | None = None,
    ) -> tuple[list[Append], TimelineState]:
        manifest, arrangements = self.arrangements.changed(at(upper), added, removed, swaps, untils)
        if self.is_own:
            return [manifest], replace(self, arrangements=arrangements, shape=shape)
        time = upper.back()
        retired, wal = self.wal.retire(time)
        state = replace(
            self, oracle=self._applied(time), wal=wal, arrangements=arrangements, shape=shape
        )
        return [manifest, retired], state

    def with_bindings(self, store: Store, catalog: Catalog) -> TimelineState:
        """Return the state with bindings of exactly the sources that there are."""
        sources = [i for i in catalog.of_pace(self.pace) if isinstance(i, Source) and not i.parent]
        known = {i.id: self.bindings[i.id] for i in sources if i.id in self.bindings}
        new = load_bindings(store, [i for i in sources if i.id not in known])
        return replace(self, bindings={**known, **new})

    def oracle_appends(
        self, store: OracleStore, durable: TimelineState | None
    ) -> tuple[Append, ...]:
        """Return the appends that advance the oracle from what is durable to this."""
        if self.is_own:
            return ()
        known = None if durable is None else durable.oracle_record
        return store.appends(self.oracle_record, known)

    @property
    def oracle_record(self) -> OracleRecord:
        """How far reads and writes have gone, as it is stored."""
        return OracleRecord(self.timeline, self.oracle.read_ts, self.oracle.write_ts)


def manifest_of(pace: Pace) -> ObjectId:
    """Return the name of a pace's manifest."""
    return ObjectId(str(pace))
