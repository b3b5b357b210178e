"""One part of one stage at work: its steps, and all that is made of them.

What steps see of it is a ``graph.Tick``. It reads what others sent, and what is kept; it
returns messages: rows for other parts, and the references of the runs that it wrote. A part
that is run again, after a failure or at the same time, writes the same files and sends the
same messages, but for what its steps took.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import by_hash
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import ArrangementId, Limits, Output, delayed_of, errors_of, is_delayed
from reclock.dataflow.job.message import COUNTED, EXCHANGED, FINISHED, ROWS, SENT, TOOK, Outbox
from reclock.dataflow.job.reader import Reader
from reclock.dataflow.job.schedule import Grouped, keyed_inputs
from reclock.dataflow.steps.accumulate import Accumulate
from reclock.dataflow.steps.groups import Groups
from reclock.dataflow.steps.leaf import Constant
from reclock.dataflow.steps.stateful import Join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    from reclock.dataflow.evaluate import Answer, Request
    from reclock.dataflow.graph import Running, Step
    from reclock.dataflow.job.errand import Errand
    from reclock.dataflow.job.message import Inbox, Message
    from reclock.dataflow.job.schedule import Schedule
    from reclock.dataflow.trace import Trace
    from reclock.ids import ObjectId

    class Answers(Protocol):
        """What Spark has computed for this part; see ``question``."""

        def to(self, at: int, request: Request) -> Answer:
            """Return the answer to what step ``at`` asks."""
            ...


INLINE_BYTES: Final = 4_096
"""Runs up to this size travel in their references."""


class Part:
    """The part ``part`` of the stage ``number`` of a schedule."""

    def __init__(
        self,
        schedule: Schedule,
        number: int,
        errand: Errand,
        *,
        part: int,
        inbox: Inbox,
        answers: Answers,
    ) -> None:
        parts = schedule.parts
        self._schedule = schedule
        self._graph = schedule.graph
        self._number = number
        self._plan = schedule.stages[number]
        self._errand = errand
        self._part = part
        self._no_key = part == parts.of_no_key
        self._inbox = inbox
        self._outbox = Outbox(part, parts)
        self._reader = Reader(self._graph, errand, parts, part, inbox)
        self._answers = answers
        self._outputs: dict[int, Output] = {}
        self._inputs: Mapping[int, pa.RecordBatch] = {}
        self._took: Counter[int] = Counter()
        self.limits = Limits(errand.untils, Counter())

    # What a step sees.

    @property
    def first(self) -> int:
        """The first time of the tick."""
        return self._errand.first

    @property
    def last(self) -> int:
        """The last time of the tick."""
        return self._errand.last

    @property
    def hydrating(self) -> bool:
        """Whether steps begin from nothing."""
        return self._errand.hydrating

    def written(self, item: ObjectId) -> pa.RecordBatch | None:
        """Return nothing: what is written is given."""
        del item
        return None

    def delta(self, step: int) -> pa.RecordBatch:
        """Return this part of the rows of a step."""
        return self._inputs[step] if step in self._inputs else self._rows(step)

    def trace(self, arrangement: ArrangementId) -> Trace:
        """Return the state before this tick."""
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
        """Whether this part says what is said once, and of no row."""
        return self._no_key

    # The stage.

    def run(self) -> list[Message]:
        """Run the steps, write what is finished, and return the messages for the next stage."""
        for name, source in self._plan.placed.items():
            self._reader.place(name, partial(self._arranged, name, source))
        for at in self._plan.steps:
            with self._timed(at):
                self._outputs[at] = self._ran(at, self._graph.steps[at])
        self._exchange()
        self._finish()
        for name, count in self.limits.dropped.items():
            self._outbox.put(COUNTED, name, str(count).encode())
        self._outbox.forward(self._inbox.chosen(self._is_needed_later))
        if self._plan.sends:
            self._outbox.count()
        elif self._number + 1 == len(self._schedule.stages):
            self._outbox.put(SENT, "", b"0")
        self._outbox.put(TOOK, "", json.dumps(self._took).encode())  # last: no size depends on it
        return self._outbox.messages

    @contextmanager
    def _timed(self, at: int) -> Iterator[None]:
        begun = perf_counter_ns()
        yield
        self._took[at] += perf_counter_ns() - begun

    def _is_needed_later(self, kind: int, name: str) -> bool:
        if kind in (FINISHED, COUNTED, SENT, TOOK):
            return True
        return self._schedule.last_uses.get((kind, name), -1) > self._number

    def _exchange(self) -> None:
        for name, at in self._plan.exchanged.items():
            keying = self._graph.keying(name)
            step = self._graph.steps[at]
            with self._timed(at):
                if isinstance(step, Accumulate) and step.state == name:
                    rows = self._rows(step.source)
                    updates = step.operator.partial(rows, self.trace(name), self.first)
                else:
                    updates = keying.arrange(self._rows(at))
                self._outbox.exchange(name, by_hash(updates))
        for name in self._plan.delayed_errors:
            if errs := self._errors(name):
                keying = self._graph.keying(name)
                self._outbox.exchange(name, by_hash(keying.arrange(deltas.union(errs))))
        for name in sorted(self._plan.carried):
            self._outbox.rows(EXCHANGED, name, self._reader.arranged(name))
        for at in sorted(self._plan.kept):
            rows = self._rows(at)
            if rows.num_rows:
                self._outbox.rows(ROWS, str(at), rows)

    def _errors(self, name: ArrangementId) -> list[pa.RecordBatch]:
        made = [self._outputs[at].errs for at in self._plan.errors.get(name, ())]
        kept = map(errors_of, sorted(self._plan.kept_errors.get(name, ())))
        made += [self._reader.collection(k) for k in kept if k in self._errand.read]
        return [errs for errs in made if errs is not None and errs.num_rows]

    def _arranged(self, name: ArrangementId, at: int) -> pa.RecordBatch:
        """Return this part of a step's rows, arranged where they are."""
        return self._graph.keying(name).arrange(self._rows(at))

    def _failures(self) -> Iterator[tuple[ArrangementId, pa.RecordBatch]]:
        """Yield the errors of views that were made in this stage."""
        for name in sorted({**self._plan.errors, **self._plan.kept_errors}):
            if not is_delayed(name) and (errs := self._errors(name)):
                keying = self._graph.keying(name)
                yield name, consolidate(keying.layout, keying.arrange(deltas.union(errs)))

    def _finish(self) -> None:
        """Write the runs of what is complete, all of them in one segment."""
        finished = [(n, self._reader.arranged(n)) for n in sorted(self._plan.finished)]
        finished += self._failures()
        for output in self._outputs.values():
            for name, updates in output.appended.items():
                if name in self._schedule.new:
                    layout = self._graph.arrangements[name].keying.layout
                    named = pa.RecordBatch.from_arrays(updates.columns, schema=layout.schema)
                    finished.append((name, consolidate(layout, named)))
        made = [(name, updates) for name, updates in finished if updates.num_rows]
        if not made:
            return
        stem = f"{self._errand.stem}-{self._number}-{self._part}"
        with SegmentWriter(self._errand.store, stem, inline_limit=INLINE_BYTES) as writer:
            for name, updates in made:
                layout = self._graph.arrangements[name].keying.layout
                run = f"{name}.{self._number}.{self._part}"
                writer.add(
                    run, layout, [updates], self._errand.descriptions[name],
                    batch_rows=rows_per_batch(updates.num_rows, updates.nbytes),
                )  # fmt: skip
            for (name, _), ref in zip(made, writer.finish(), strict=True):
                self._outbox.put(FINISHED, name, json.dumps(ref.to_json()).encode())

    def _rows(self, at: int) -> pa.RecordBatch:
        """Return this part of a step's rows: given, made in this stage, or kept by another."""
        if at in self._schedule.given:
            return self._reader.collection(self._schedule.given[at])
        if at in self._outputs:
            return self._outputs[at].oks
        return self._reader.kept_rows(at)

    def _ran(self, at: int, step: Step) -> Output:
        """Run one step on this part."""
        if self._elsewhere(step):
            return Output(deltas.empty(step.types))
        if isinstance(step, Accumulate) and self._is_exchanged(step):
            made = step.operator.combined(self._reader.arranged(step.state), self.trace(step.state))
            errors = made.errors if made.errors.num_rows else None
            return Output(made.delta, errors, {step.state: made.state})
        if isinstance(step, Join):
            left, right = (self._reader.arranged(n) for n in (step.left_state, step.right_state))
            traces = self.trace(step.left_state), self.trace(step.right_state)
            return Output(step.operator.keyed_step(left, traces[0], right, traces[1]))
        self._inputs = {}
        if isinstance(step, Grouped):
            self._inputs = {at: self._reader.collection(name) for at, name in keyed_inputs(step)}
        started = step.run(self)
        return started if isinstance(started, Output) else self._answered(at, started)

    def _is_exchanged(self, step: Accumulate) -> bool:
        """Return whether partial totals of a step were exchanged."""
        before = self._schedule.stages[self._number - 1] if self._number else None
        return before is not None and step.state in before.exchanged

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
