"""One tick of a graph, on the driver: changes in, updates of every arrangement out.

Steps run as soon as their inputs are known; a step whose inputs are all empty is skipped,
so the cost follows the change. Steps that need Spark wait until nothing else can run, and
are then answered together: one *wave* of Spark work per level of expressions in the plan,
however many views there are.

``Tick`` is a pure computation: it reads traces (times before the tick) and returns what
to append to which arrangement. Nothing is written here; the same call gives the same
answer, so a tick that failed is simply run again. There is no loop and no clock. Keeps
P3: every arrangement's updates have times inside the tick, and accumulate to the plan's
rows at each of them.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.dataflow import delta as deltas
from reclock.dataflow.costs import ARRANGE, weight
from reclock.dataflow.graph import Limits, Output, errors_of
from reclock.dataflow.operators.temporal import is_due
from reclock.dataflow.trace import EmptyTrace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.dataflow.costs import Costs
    from reclock.dataflow.evaluate import Answer, Evaluator, Request
    from reclock.dataflow.graph import ArrangementId, Graph, Running
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.trace import Trace
    from reclock.ids import ObjectId


SHARED_ROWS: Final = 10_000
"""Larger deltas than this are arranged once, if a view has the same rows as what it reads."""


class Tick:
    """One run of (a part of) a graph.

    ``times`` are those of ``[lower, upper)``. ``hydrating`` says that the steps begin from
    nothing. Of a part of a graph ``given`` has the outputs of some steps, ``errors`` the error
    rows below these that are to be delayed, and only the ``wanted`` arrangements, and what they
    need, are computed. What its steps take is noted in ``costs``, and of each in ``seconds``; how
    many updates each gives, in ``rows``.
    """

    def __init__(
        self,
        graph: Graph,
        written: Mapping[ObjectId, pa.RecordBatch],
        traces: Mapping[ArrangementId, Trace],
        times: range,
        *,
        hydrating: bool = False,
        given: Mapping[int, Output] | None = None,
        wanted: frozenset[ArrangementId] | None = None,
        limits: Limits | None = None,
        errors: Mapping[ArrangementId, Sequence[pa.RecordBatch]] | None = None,
        costs: Costs | None = None,
        seconds: dict[int, float] | None = None,
        rows: dict[int, int] | None = None,
    ) -> None:
        self._costs = costs
        self._rows = {} if rows is None else rows
        self._seconds = {} if seconds is None else seconds
        self._graph = graph
        self._written = written
        self._traces = traces
        self._times = times
        self._hydrating = hydrating
        self.limits = limits or Limits()
        self._errors = errors or {}
        self._shared: dict[tuple[Keying, tuple[int, ...]], tuple[pa.RecordBatch, pa.RecordBatch]]
        self._shared = {}
        self._wanted = frozenset(graph.arrangements) if wanted is None else wanted
        self._outputs: dict[int, Output] = dict(given or {})
        needed = graph.needed(self._wanted, self._outputs)
        self._steps = needed - self._outputs.keys()

    @property
    def last(self) -> int:
        """The last time of the tick."""
        return self._times[-1]

    @property
    def first(self) -> int:
        """The first time of the tick."""
        return self._times[0]

    @property
    def hydrating(self) -> bool:
        """Whether the steps begin from nothing."""
        return self._hydrating

    @property
    def leads(self) -> bool:
        """Always: there is no other worker."""
        return True

    def errors(self, pending: ArrangementId) -> list[pa.RecordBatch]:
        """Return the error rows of the steps whose errors are delayed there."""
        return [*self._errors.get(pending, ()), *self._errs(pending)]

    def written(self, item: ObjectId) -> pa.RecordBatch | None:
        """Return what was written to ``item`` from outside."""
        return self._written.get(item)

    def delta(self, step: int) -> pa.RecordBatch:
        """Return the delta of a step that has run."""
        return self._outputs[step].oks

    def trace(self, arrangement: ArrangementId) -> Trace:
        """Return the state before this tick; nothing while hydrating."""
        layout = self._graph.arrangements[arrangement].keying.layout
        known = None if self._hydrating else self._traces.get(arrangement)
        return EmptyTrace(layout) if known is None else known

    def due(self, pending: ArrangementId) -> list[pa.RecordBatch]:
        """Return the updates that waited for a time of this tick."""
        return list(self.trace(pending).within(self.first, self.last))

    def run(self, evaluator: Evaluator) -> dict[ArrangementId, pa.RecordBatch]:
        """Run all steps, and return the updates to append to each arrangement."""
        missing = {at: self._missing(at) for at in self._steps}
        ready = deque(sorted(at for at, count in missing.items() if count == 0))
        waiting: list[tuple[int, Running, Request]] = []

        def finish(at: int, output: Output) -> None:
            self._outputs[at] = output
            self._rows[at] = self._rows.get(at, 0) + output.oks.num_rows
            for reader in self._graph.readers[at]:
                if reader in missing:
                    missing[reader] -= 1
                    if missing[reader] == 0:
                        ready.append(reader)

        def advance(at: int, running: Running, answer: Answer | None) -> None:
            try:
                request = next(running) if answer is None else running.send(answer)
            except StopIteration as done:
                finish(at, done.value)
            else:
                waiting.append((at, running, request))

        while ready or waiting:
            while ready:
                at = ready.popleft()
                begun = perf_counter()
                started = self._start(at)
                if isinstance(started, Output):
                    self._note(at, perf_counter() - begun)
                    finish(at, started)
                else:
                    advance(at, started, None)
            wave, waiting = waiting, []
            begun = perf_counter()
            answers = evaluator.evaluate([request for _, _, request in wave]) if wave else []
            self._note_wave(wave, perf_counter() - begun)
            for (at, running, _), answer in zip(wave, answers, strict=True):
                advance(at, running, answer)
        begun = perf_counter()
        appended = self._appended()
        if self._costs is not None:
            rows = sum(weight(made.num_rows, made.nbytes) for made in appended.values())
            self._costs.note(ARRANGE, rows, perf_counter() - begun)
        return appended

    def _note(self, at: int, seconds: float) -> None:
        """Note what a step took."""
        self._seconds[at] = self._seconds.get(at, 0.0) + seconds
        if self._costs is not None:
            step = self._graph.steps[at]
            inputs = (self._outputs[i].oks for i in step.inputs)
            rows = sum(weight(some.num_rows, some.nbytes) for some in inputs)
            self._costs.note(type(step).__name__, rows, seconds)

    def _note_wave(self, wave: Sequence[tuple[int, Running, Request]], seconds: float) -> None:
        """Note what Spark took: it is shared among the steps that asked, by their rows."""
        rows = sum(request.rows.num_rows for _, _, request in wave)
        if rows:
            for at, _, request in wave:
                self._note(at, seconds * request.rows.num_rows / rows)

    def _missing(self, at: int) -> int:
        """Return how many inputs must run before step ``at``."""
        return len(set(self._graph.steps[at].inputs) & self._steps)

    def _start(self, at: int) -> Output | Running:
        step = self._graph.steps[at]
        quiet = all(self._outputs[i].oks.num_rows == 0 for i in step.inputs)
        pending = self._graph.waiting.get(at)
        if pending is not None and is_due(self.trace(pending), self.first, self.last):
            quiet = False
        delayed = self._graph.delayed.get(at)
        if delayed is not None and self.errors(delayed):
            quiet = False
        if quiet and step.inputs and not self._hydrating:
            return Output(deltas.empty(step.types))
        return step.run(self)

    def _appended(self) -> dict[ArrangementId, pa.RecordBatch]:
        """Return the updates of every wanted arrangement that changed, consolidated."""
        appended: dict[ArrangementId, pa.RecordBatch] = {}
        for name in self._wanted:
            source = self._graph.arrangements[name].source
            if source is not None:
                self._add(appended, name, self._outputs[source].oks)
        for output in self._outputs.values():
            for name, updates in output.appended.items():
                if name in self._wanted:
                    self._add_arranged(appended, name, self._named(name, updates))
        for name in map(errors_of, self._graph.views):
            if name in self._wanted and (errs := self._errs(name)):
                self._add(appended, name, deltas.union(errs))
        return appended

    def _errs(self, name: ArrangementId) -> list[pa.RecordBatch]:
        """Return the error rows of the steps that have run and whose errors these are."""
        known = sorted(self._graph.faulty[name] & self._outputs.keys())
        return [e for at in known if (e := self._outputs[at].errs) is not None and e.num_rows]

    def _named(self, to: ArrangementId, updates: pa.RecordBatch) -> pa.RecordBatch:
        """Return updates that a step made by position with the names of the arrangement."""
        schema = self._graph.arrangements[to].keying.layout.schema
        return pa.RecordBatch.from_arrays(updates.columns, schema=schema)

    def _add(
        self,
        appended: dict[ArrangementId, pa.RecordBatch],
        to: ArrangementId,
        delta: pa.RecordBatch,
    ) -> None:
        if not delta.num_rows:
            return
        keying = self._graph.arrangements[to].keying
        if delta.num_rows < SHARED_ROWS:
            self._add_arranged(appended, to, keying.arrange(delta))
            return
        known = keying, _memory(delta)
        if known not in self._shared:
            arranged = consolidate(keying.layout, keying.arrange(delta))
            self._shared[known] = delta, arranged  # the delta too: its place stays taken
        made = self._shared[known][1]
        if made.num_rows:
            appended[to] = made

    def _add_arranged(
        self,
        appended: dict[ArrangementId, pa.RecordBatch],
        to: ArrangementId,
        updates: pa.RecordBatch,
    ) -> None:
        """Append updates in the order of a run: a look-up searches runs by their hashes."""
        made = consolidate(self._graph.arrangements[to].keying.layout, updates)
        if made.num_rows:
            appended[to] = made


def _memory(delta: pa.RecordBatch) -> tuple[int, ...]:
    """Return where the columns of a delta lie: the same place has the same values."""
    found = []
    for column in delta.columns:
        found += [column.offset, len(column)]
        found += [0 if part is None else part.address for part in column.buffers()]
    return tuple(found)
