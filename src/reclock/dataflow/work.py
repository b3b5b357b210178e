"""Work, wherever it runs: a tick, a first load, or catching up.

Definition. ``Work`` asks for the updates in ``[lower, upper)`` of the ``wanted`` arrangements of a
graph, given

* a *tick*: the changes that came from outside, and the state before ``lower``;
* a *first load*: nothing before, and all rows of kept collections as of ``upper − 1``;
* *catching up*: what changed in kept collections, and the state before ``lower`` of what a first
  load has filled.

``InProcess`` computes it in this process, ``spark.job.Job`` in Spark tasks. Both run the same steps
and operators and give the same updates (P3); the one in memory, the other as runs. A first load
that runs beside ticks, a renewal of what expires, is in small pieces in this process.

Tests: tests/dataflow/test_maintain.py, test_job_tick.py; beside ticks: test_envelope_views.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.stream import sliced
from reclock.dataflow import delta as deltas
from reclock.dataflow.given import Given
from reclock.dataflow.graph import Limits, Output, collection_of, errors_of
from reclock.dataflow.maintain import Tick
from reclock.dataflow.steps.linear import FlatMap, Linear
from reclock.dataflow.steps.multiset import Negate, Union
from reclock.dataflow.steps.temporal import Temporal
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.shard import Shard
    from reclock.dataflow.changes import Changes
    from reclock.dataflow.costs import Costs
    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.dataflow.stop import Stop
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

PIECE_ROWS: Final = 1 << 14
"""How many rows work beside ticks takes at once: a few milliseconds of work."""

_ROW_BY_ROW: Final = (Linear, FlatMap, Union, Negate, Temporal)
"""Steps of which the image of a sum is the sum of the images."""


@dataclass
class Effort:
    """What some work took: of Spark so many tasks, which sent one another so many bytes.

    ``by_tasks``: whether a job computed the updates. Tasks may also have looked at what came in,
    for work that this process then did. ``seconds`` are of each step of the graph: in this process,
    or in all tasks of the job together, without expressions, which Spark computes between tasks.
    """

    tasks: int = 0
    bytes: int = 0
    by_tasks: bool = False
    seconds: dict[int, float] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    """How many updates each step gave, in this process."""

    def note(self, took: Mapping[str, int]) -> None:
        """Note the nanoseconds of the steps of a task."""
        for step, nanoseconds in took.items():
            self.seconds[int(step)] = self.seconds.get(int(step), 0.0) + nanoseconds / 1e9


@dataclass(frozen=True)
class Work:
    """See the head of this module; ``tick``, ``load`` and ``catch_up`` make it."""

    graph: Graph
    lower: Timestamp
    upper: Timestamp
    changes: Mapping[ObjectId, Changes] = field(default_factory=dict)
    """From outside, in a tick."""
    wanted: frozenset[ArrangementId] | None = None
    """None: all, in a tick."""
    kept: Mapping[ArrangementId, Shard] = field(default_factory=dict)
    """Collections that are read, unless it is a tick."""
    state: Mapping[ArrangementId, Shard] = field(default_factory=dict)
    """What operators look up: nothing in a first load."""
    hydrating: bool = False
    limits: Limits = field(default_factory=Limits)
    effort: Effort = field(default_factory=Effort)
    """Where a job notes what it took; nothing, in this process."""

    @classmethod
    def tick(
        cls,
        graph: Graph,
        changes: Mapping[ObjectId, Changes],
        traces: Mapping[ArrangementId, Shard],
        *,
        lower: Timestamp,
        upper: Timestamp,
        limits: Limits | None = None,
        effort: Effort | None = None,
    ) -> Work:
        """Return the work of a tick."""
        return cls(
            graph, lower, upper, changes, state=traces, limits=limits or Limits(),
            effort=effort or Effort(),
        )  # fmt: skip

    @classmethod
    def load(
        cls,
        graph: Graph,
        new: frozenset[ArrangementId],
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        limits: Limits | None = None,
    ) -> Work:
        """Return the work that fills new arrangements as of a time."""
        return cls(
            graph, as_of, as_of.step(), wanted=new, kept=traces, hydrating=True,
            limits=limits or Limits(),
        )  # fmt: skip

    @classmethod
    def catch_up(
        cls,
        graph: Graph,
        new: frozenset[ArrangementId],
        before: Mapping[ArrangementId, Shard],
        after: Mapping[ArrangementId, Shard],
        *,
        lower: Timestamp,
        upper: Timestamp,
        limits: Limits | None = None,
    ) -> Work:
        """Return the work that brings new arrangements from ``lower`` to ``upper``.

        ``before`` has all, the new ones too, before ``lower``; ``after`` those that are not new,
        before ``upper``.
        """
        return cls(
            graph, lower, upper, wanted=new, kept=after, state=before, limits=limits or Limits()
        )

    @cached_property
    def given(self) -> Given:
        """What a first load begins from."""
        assert self.wanted is not None
        return Given.of(self.graph, self.wanted, self.kept)

    @cached_property
    def rows(self) -> int:
        """How many updates come in, at most."""
        if self.wanted is None:
            return sum(change.rows for change in self.changes.values())
        if self.hydrating:
            return sum(shard.rows for shard in self._read)
        return sum(shard.rows_from(self.lower) for shard in self._read)

    @cached_property
    def bytes(self) -> int:
        """About how many bytes these have."""
        if self.wanted is None:
            return sum(change.bytes for change in self.changes.values())
        if self.hydrating:
            return sum(shard.bytes for shard in self._read)
        return sum(
            shard.bytes * shard.rows_from(self.lower) // max(1, shard.rows) for shard in self._read
        )

    @cached_property
    def _read(self) -> list[Shard]:
        """The kept arrangements that come in."""
        assert self.wanted is not None
        names = self.given.sources(self.graph, self.wanted)
        return [shard for name in names if (shard := self.kept.get(name)) is not None]


@dataclass(frozen=True)
class Stream:
    """Updates in consolidated pieces that follow one another, each made when it is asked for."""

    rows: int
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class InProcess:
    """Computes in this process; Spark, if it is needed, is asked by an evaluator."""

    evaluator: Evaluator
    costs: Costs | None = None
    """Where what it takes is noted."""

    def beside(
        self, work: Work, ticks: Unhurried, stop: Stop | None = None
    ) -> dict[ArrangementId, pa.RecordBatch | Stream]:
        """Do a first load while ticks go on, which go first: in small pieces, where possible.

        It is where only steps that look at one update at a time lie between one kept collection
        and what is new.
        """
        graph, as_of = work.graph, work.lower
        assert work.wanted is not None
        made: dict[ArrangementId, pa.RecordBatch | Stream] = {}
        rest: set[ArrangementId] = set()
        for name in sorted(work.wanted):
            source = _only_source(graph, name, work.kept)
            if source is None:
                rest.add(name)
                continue
            step, collection = source
            rows = (
                graph.arrangements[collection].keying.restore(block)
                for block in work.kept[collection].snapshot(as_of, block_rows=PIECE_ROWS)
            )
            found: list[pa.RecordBatch] = []
            for delta in ticks.pieces(rows):
                if stop is not None:
                    stop.check()
                tick = Tick(
                    graph, {}, {}, range(as_of, as_of + 1), hydrating=True,
                    given={step: Output(delta)}, wanted=frozenset({name}), limits=work.limits,
                )  # fmt: skip
                found += tick.run(self.evaluator).values()
            if found:
                pieces = sliced(graph.arrangements[name].keying.layout, found, PIECE_ROWS)
                made[name] = Stream(sum(part.num_rows for part in found), ticks.pieces(pieces))
        if rest:
            made |= self.run(replace(work, wanted=frozenset(rest)))
        return made

    def run(self, work: Work) -> dict[ArrangementId, pa.RecordBatch]:
        """Return the updates of every arrangement that changes, consolidated."""
        graph, times = work.graph, range(work.lower, work.upper)
        if work.wanted is None:
            changes = {
                item: change.delta(graph.keying(graph.entry(item)[1]))
                for item, change in work.changes.items()
            }
            tick = Tick(
                graph, changes, work.state, times,
                limits=work.limits, costs=self.costs, seconds=work.effort.seconds,
                rows=work.effort.rows,
            )  # fmt: skip
            return tick.run(self.evaluator)
        given = work.given
        steps = {
            step: Output(self._read(work, collection_of(given.steps[step])))
            for step in sorted(graph.needed(work.wanted, given.steps) & given.steps.keys())
        }
        known = {  # each view's own: they need not be the same
            name: [e for i in sorted(items) if (e := self._read(work, errors_of(i))).num_rows]
            for name, items in given.errors.items()
        }
        tick = Tick(
            graph, {}, work.state, times, hydrating=work.hydrating, given=steps,
            wanted=work.wanted, limits=work.limits, errors=known, costs=self.costs,
        )  # fmt: skip
        return with_errors(graph, tick.run(self.evaluator), known)

    def _read(self, work: Work, name: ArrangementId) -> pa.RecordBatch:
        """Return the rows of a kept collection, or what changed in it, as a delta."""
        keying = work.graph.arrangements[name].keying
        shard = work.kept.get(name)
        if shard is None:
            return deltas.empty(keying.types)
        if work.hydrating:
            found = shard.snapshot(work.lower)
        else:
            found = shard.changes(work.lower, at(work.upper))
        parts = [keying.restore(batch) for batch in found]
        return deltas.union(parts) if parts else deltas.empty(keying.types)


def _only_source(
    graph: Graph, name: ArrangementId, traces: Mapping[ArrangementId, Shard]
) -> tuple[int, ArrangementId] | None:
    """Return the one step that an arrangement is made of update by update, and where it is kept."""
    new = frozenset({name})
    begin = Given.of(graph, new, traces)
    needed = graph.needed(new, begin.steps)
    sources, steps = needed & begin.steps.keys(), needed - begin.steps.keys()
    by_row = all(isinstance(graph.steps[at], _ROW_BY_ROW) for at in steps)
    if len(sources) != 1 or not by_row or name in begin.errors:
        return None
    (source,) = sources
    return source, collection_of(begin.steps[source])


def with_errors(
    graph: Graph,
    made: dict[ArrangementId, pa.RecordBatch],
    known: Mapping[ArrangementId, Sequence[pa.RecordBatch]],
) -> dict[ArrangementId, pa.RecordBatch]:
    """Return updates with the error rows that views take over from those they are made of.

    Those that are delayed were given to the step that does.
    """
    found = dict(made)
    for name in known.keys() - graph.delayed.values():
        keying = graph.arrangements[name].keying
        errs = [*known[name], *([keying.restore(made[name])] if name in made else ())]
        if errs:
            found[name] = consolidate(keying.layout, keying.arrange(deltas.union(errs)))
    return found
