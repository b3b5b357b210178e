"""What a worker does in a stage: one part of every step, and of all that is made of it.

A value that pickles: the graph, the plan of the stage and references to runs. It returns
references too, ``(kind, name, reference)`` per run it wrote; rows stay where they are. A part
that is run again, after a failure or beside itself, writes the same files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import diff_of, time_of
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow import delta as deltas
from reclock.dataflow.bulk.answers import Answers, AskedNow
from reclock.dataflow.bulk.exchange import Reader, by_hash, spill_layout
from reclock.dataflow.bulk.schedule import Grouped, keyed_inputs
from reclock.dataflow.graph import ArrangementId, Output, delayed_of, errors_of
from reclock.dataflow.spark_errors import carried
from reclock.dataflow.steps.accumulate import Accumulate
from reclock.dataflow.steps.groups import Groups
from reclock.dataflow.steps.leaf import Constant
from reclock.dataflow.steps.stateful import Join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.dataflow.bulk.exchange import Shelf
    from reclock.dataflow.bulk.schedule import Schedule, StagePlan
    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.graph import Limits, Running, Step
    from reclock.dataflow.trace import Trace
    from reclock.ids import ObjectId
    from reclock.time.description import Description
    from reclock.time.timestamp import Timestamp

EXCHANGED: Final = "exchanged"
ROWS: Final = "rows"
FINISHED: Final = "finished"
ANSWERS: Final = "answers"
SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("kind", "name", "ref")])
DDL: Final = "kind STRING, name STRING, ref STRING"

INLINE_BYTES: Final = 4_096
"""Runs up to this size travel in their references."""


@dataclass(frozen=True)
class RunStage:
    """The stage ``number`` of a schedule; ``stem`` begins the names of all files.

    Without an ``evaluator`` the answers of Spark are on the shelf.
    """

    schedule: Schedule
    number: int
    shelf: Shelf
    descriptions: Mapping[ArrangementId, Description[Timestamp]]
    passing: Description[Timestamp]
    stem: str
    evaluator: Evaluator | None = None

    @property
    def plan(self) -> StagePlan:
        """What every worker does."""
        return self.schedule.stages[self.number]

    def description_of(self, name: str) -> Description[Timestamp]:
        """Return what a run of an arrangement that stays describes."""
        return self.descriptions[ArrangementId(name)]

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run every part that is asked for by its number."""
        with carried():
            for batch in numbers:
                for part in batch.column(0).to_pylist():
                    yield references(self.part(part))

    def part(self, number: int) -> list[tuple[str, str, RunRef]]:
        """Run one part, and return what was written: kind, name and reference."""
        return [made for made in _Part(self, number).run() if made[2].rows]


def references(found: list[tuple[str, str, RunRef]]) -> pa.RecordBatch:
    """Return references as rows of ``SCHEMA``."""
    rows = [(kind, name, json.dumps(ref.to_json())) for kind, name, ref in found]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], schema=SCHEMA)


class _Writer:
    """Runs of one kind of life, in one segment."""

    def __init__(
        self, writer: SegmentWriter, description: Callable[[str], Description[Timestamp]]
    ) -> None:
        self._writer = writer
        self._description = description
        self._names: list[tuple[str, str]] = []

    def add(self, kind: str, name: str, layout: Layout, updates: pa.RecordBatch, part: int) -> None:
        per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
        batches = [updates] if updates.num_rows else []
        described = self._description(name)
        self._writer.add(f"{name}.{part}", layout, batches, described, batch_rows=per_batch)
        self._names.append((kind, name))

    def finish(self) -> list[tuple[str, str, RunRef]]:
        refs = zip(self._names, self._writer.finish(), strict=True)
        return [(kind, name, ref) for (kind, name), ref in refs]


class _Part:
    """One part of one stage, at work; what steps see of it is a ``graph.Tick``."""

    def __init__(self, task: RunStage, part: int) -> None:
        self._task = task
        self._graph = task.schedule.graph
        self._given = task.schedule.given
        self._plan = task.plan
        self._part = part
        self._no_key = part == task.shelf.parts.of_no_key
        self._reader = Reader(self._graph, task.shelf, part)
        self._answers: Answers | AskedNow = (
            Answers(self._graph, self._plan, self._reader)
            if task.evaluator is None
            else AskedNow(self._graph, self._plan, task.evaluator)
        )
        self._outputs: dict[int, Output] = {}
        self._inputs: Mapping[int, pa.RecordBatch] = {}

    # What a step sees.

    @property
    def first(self) -> int:
        return self._task.shelf.first

    @property
    def last(self) -> int:
        return self._task.shelf.last

    @property
    def hydrating(self) -> bool:
        return self._task.shelf.hydrating

    @property
    def limits(self) -> Limits:
        return self._task.shelf.limits

    def written(self, item: ObjectId) -> pa.RecordBatch | None:
        del item
        return None

    def delta(self, step: int) -> pa.RecordBatch:
        return self._inputs[step] if step in self._inputs else self._rows(step)

    def trace(self, arrangement: ArrangementId) -> Trace:
        return self._reader.trace(arrangement)

    def due(self, pending: ArrangementId) -> list[pa.RecordBatch]:
        """Return what is due and, by its time, in this part's range: one part has it."""
        first, last = max(self.first, self._reader.first), min(self.last, self._reader.last)
        return list(self.trace(pending).within(first, last))

    def errors(self, pending: ArrangementId) -> list[pa.RecordBatch]:
        """Return this part of the errors of earlier stages."""
        return [self._reader.collection(delayed_of(pending))]

    @property
    def leads(self) -> bool:
        return self._no_key

    # The stage.

    def run(self) -> list[tuple[str, str, RunRef]]:
        """Run the steps, write what others need, and return where it is."""
        task, store = self._task, self._task.shelf.store
        for at in self._plan.steps:
            self._outputs[at] = self._ran(at, self._graph.steps[at])
        stem = f"{task.stem}-{task.number}-{self._part}"
        with (
            SegmentWriter(store, f"{stem}-x", inline_limit=INLINE_BYTES) as exchanged,
            SegmentWriter(store, stem, inline_limit=INLINE_BYTES) as finished,
        ):
            passing = _Writer(exchanged, lambda _: task.passing)
            self._exchange(passing)
            lasting = _Writer(finished, task.description_of)
            self._finish(lasting)
            return [*passing.finish(), *lasting.finish()]

    def _exchange(self, writer: _Writer) -> None:
        for name, at in self._plan.exchanged.items():
            keying = self._graph.keying(name)
            step = self._graph.steps[at]
            if isinstance(step, Accumulate) and step.state == name:
                updates = step.operator.partial(
                    self._rows(step.source), self.trace(name), self.first
                )
            else:
                updates = keying.arrange(self._rows(at))
            writer.add(EXCHANGED, name, keying.layout, by_hash(updates), self._part)
        for name in {**self._plan.errors, **self._plan.kept_errors}:
            errs = self._errors(name)
            if errs:
                keying = self._graph.keying(name)
                updates = by_hash(keying.arrange(deltas.union(errs)))
                writer.add(EXCHANGED, name, keying.layout, updates, self._part)
        for at in sorted(self._plan.kept):
            layout = spill_layout(self._graph.steps[at].types)
            rows = self._rows(at)
            here = np.full(rows.num_rows, self._reader.first)
            updates = layout.batch(here, deltas.rows_of(rows), time_of(rows), diff_of(rows))
            writer.add(ROWS, str(at), layout, updates, self._part)

    def _errors(self, name: ArrangementId) -> list[pa.RecordBatch]:
        made = [self._outputs[at].errs for at in self._plan.errors.get(name, ())]
        kept = map(errors_of, sorted(self._plan.kept_errors.get(name, ())))
        made += [self._reader.collection(k) for k in kept if self._reader.has(k)]
        return [errs for errs in made if errs is not None and errs.num_rows]

    def _finish(self, writer: _Writer) -> None:
        for name in sorted(self._plan.finished):
            layout = self._graph.arrangements[name].keying.layout
            writer.add(FINISHED, name, layout, self._reader.arranged(name), self._part)
        for output in self._outputs.values():
            for name, updates in output.appended.items():
                if name in self._task.schedule.new:
                    layout = self._graph.arrangements[name].keying.layout
                    named = pa.RecordBatch.from_arrays(updates.columns, schema=layout.schema)
                    writer.add(FINISHED, name, layout, consolidate(layout, named), self._part)

    def _rows(self, at: int) -> pa.RecordBatch:
        """Return this part of a step's rows: given, made in this stage, or kept by another."""
        if at in self._given:
            return self._reader.collection(self._given[at])
        if at in self._outputs:
            return self._outputs[at].oks
        return self._reader.kept_rows(at)

    def _ran(self, at: int, step: Step) -> Output:
        """Run one step on this part."""
        if self._elsewhere(step):
            return Output(deltas.empty(step.types))
        if isinstance(step, Accumulate):
            made = step.operator.combined(self._reader.arranged(step.state), self.trace(step.state))
            errors = made.errors if made.errors.num_rows else None
            return Output(made.delta, errors, {step.state: made.state})
        if isinstance(step, Join):
            left, right = (self._reader.collection(n) for n in (step.left_state, step.right_state))
            traces = self.trace(step.left_state), self.trace(step.right_state)
            return Output(step.operator.step(left, traces[0], right, traces[1]))
        self._inputs = {}
        if isinstance(step, Grouped):
            self._inputs = {at: self._reader.collection(name) for at, name in keyed_inputs(step)}
        started = step.run(self)
        return started if isinstance(started, Output) else self._answered(at, started)

    def _answered(self, at: int, running: Running) -> Output:
        """Give a step the answer that it asks for."""
        try:
            running.send(self._answers.to(at, next(running)))
        except StopIteration as done:
            output: Output = done.value
            return output
        message = f"step {at} asks for more than was foreseen"
        raise AssertionError(message)

    def _elsewhere(self, step: Step) -> bool:
        """Return whether only another part has a say: what has no key is in one part."""
        match step:
            case Constant():
                return not self._no_key
            case Accumulate():
                return step.operator.global_ and not self._no_key
            case Groups():
                return not step.keying.key and not self._no_key
        return False
