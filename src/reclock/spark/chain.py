"""The stages of a schedule as one chain of DataFrames, executed as one Spark job.

::

    range ─ [ask ─ project] ─ stage 0 ─ shuffle ─ [ask ─ project] ─ stage 1 ─ …

Stages are ``mapInArrow`` over messages; the shuffle sends each message to the partition that it
names. A stage that asks is preceded by a task that gives, with the messages of its part, the
rows that its questions are about; expressions are one projection of them, without a shuffle, so
each part finds its answers in its own order. Groups are a query by version over the same frame, in
which a message is a group of its own; the answers become messages to the parts whose groups they
are. No frame is used twice, so nothing is computed twice.

Nothing here depends on what a tick is about: that is the errand, which tasks find among the
properties of their job. So a chain is built once. ``again`` executes it: Spark keeps the output of
a shuffle with the plan that was executed, so each execution is a plan of its own over what has
been analysed before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from reclock.dataflow import delta as deltas
from reclock.dataflow.job.errand import Errand, received
from reclock.dataflow.job.message import (
    ANSWERS,
    COLUMNS,
    DDL,
    SCHEMA,
    SENT,
    Inbox,
    Message,
    batches_of,
    packed,
    pieces,
)
from reclock.dataflow.job.part import Part
from reclock.dataflow.job.question import VERSION_BITS, Answers, Questions
from reclock.spark.errors import carried
from reclock.spark.evaluator import Bundle, names_of, projection, whole
from reclock.spark.group_text import group_text
from reclock.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from reclock.dataflow.evaluate import Evaluated
    from reclock.dataflow.job.question import GroupQuestion, RowQuestion
    from reclock.dataflow.job.schedule import Schedule

ERRAND: Final = "reclock.errand"
"""The property of a job that has its errand."""

BATCH_ROWS: Final = 1 << 16

_NO_MESSAGE: Final = [
    f"CAST(NULL AS {kind}) AS {name}"
    for name, kind in (column.split() for column in DDL.split(", "))
]
"""The first stage has no messages: a row without a kind is none."""


def build(session: SparkSession, schedule: Schedule) -> DataFrame:
    """Return the chain of a schedule; its rows are messages to the driver."""
    count = schedule.parts.count
    frame = session.range(0, count, 1, count).selectExpr(*_NO_MESSAGE)
    for number, before in enumerate([None, *schedule.stages[:-1]]):
        if before is not None and before.sends:
            frame = frame.repartitionById(count, "target")
        questions = Questions.of(schedule, number)
        for question in questions.groups:
            frame = _grouped(frame, question)
        if questions.rows:
            frame = _projected(frame, questions.rows)
        frame = frame.mapInArrow(_Stage(schedule, number), DDL)
    return frame


def again(chain: DataFrame) -> DataFrame:
    """Return the chain as a plan that has not been executed."""
    return chain.select("kind", "name", "blob")


def _projected(frame: DataFrame, questions: tuple[RowQuestion, ...]) -> DataFrame:
    """Return messages, and rows with the values and errors of all expressions over them."""
    fields = [*SCHEMA, pa.field("b", pa.int32())]
    bundles = []
    for nth, question in enumerate(questions):
        names = names_of(nth, len(question.types))
        fields += [pa.field(names[i], question.types[i]) for i in question.used]
        bundles.append(Bundle(deltas.empty(question.types), question.scalars))
    schema = from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)
    asked = frame.mapInArrow(_AskRows(questions, pa.schema(fields)), schema)
    return projection(asked, bundles, [*COLUMNS, "b"])


def _grouped(frame: DataFrame, question: GroupQuestion) -> DataFrame:
    """Return messages, those with the answers to a question about groups among them."""
    step = question.step
    types = step.keying.types
    columns = [pa.field(f"c{i}", kind) for i, kind in enumerate(types)]
    fields = pa.schema([*SCHEMA, pa.field("version", pa.int64()), *columns])
    schema = from_arrow_schema(fields, prefer_timestamp_ntz=True)
    asked = frame.mapInArrow(_AskGroups(question, fields), schema)
    text = group_text(step.node, COLUMNS)
    answers = frame.sparkSession.sql(text, rows=asked)
    count = question.schedule.parts.count
    return answers.mapInArrow(_Answered(question), DDL).repartitionById(count, "target")


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the messages; the rows that the first stage gets are none."""
    for batch in batches:
        kinds = batch.column(COLUMNS.index("kind"))
        yield batch.filter(kinds.is_valid()) if kinds.null_count else batch


def _errand() -> tuple[Errand, int]:
    """Return what this task's job is about, and which part is the task's."""
    context = TaskContext.get()
    assert context is not None
    text = context.getLocalProperty(ERRAND)
    assert text is not None
    errand = received(text)
    settle()
    return errand, context.partitionId()


@dataclass(frozen=True)
class _Stage:
    """What a task of a stage runs."""

    schedule: Schedule
    number: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take messages, and answers to what is asked; give messages."""
        settle()
        with carried():
            errand, part = _errand()
            questions = Questions.of(self.schedule, self.number)
            inbox, about = self._taken(questions, batches)
            answers = Answers(questions, about, inbox)
            made = Part(
                self.schedule, self.number, errand, part=part, inbox=inbox, answers=answers
            ).run()
            yield from batches_of(made)

    def _taken(
        self, questions: Questions, batches: Iterable[pa.RecordBatch]
    ) -> tuple[Inbox, dict[int, Evaluated]]:
        inbox = Inbox()
        if not questions.rows:
            for batch in batches:
                inbox.take(batch)
            return inbox, {}
        found: list[list[pa.RecordBatch]] = [[] for _ in questions.rows]
        for batch in batches:
            inbox.take(batch)
            owner = batch.column(len(COLUMNS)).to_numpy(zero_copy_only=False)
            for nth in np.unique(owner[owner >= 0]).astype(int).tolist():
                found[nth].append(batch.filter(pa.array(owner == nth)))
        about, start = {}, len(COLUMNS) + 1
        for question, some in zip(questions.rows, found, strict=True):
            kinds = question.answer_types
            columns = [
                whole(pa.chunked_array([b.column(start + i) for b in some], type=None), kind)
                if some else pa.array([], kind)
                for i, kind in enumerate(kinds)
            ]  # fmt: skip
            about[question.source] = question.evaluated(columns)
            start += len(kinds)
        return inbox, about


@dataclass(frozen=True)
class _AskRows:
    """Messages as they are, then the rows of every question in columns of their own."""

    questions: tuple[RowQuestion, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        with carried():
            inbox = Inbox()
            for batch in _messages(batches):
                inbox.take(batch)
                yield self._wide(batch.num_rows, dict(zip(COLUMNS, batch.columns, strict=True)), -1)
            errand, part = _errand()
            for nth, question in enumerate(self.questions):
                rows = question.rows(errand, part, inbox)
                names = names_of(nth, len(question.types))
                columns = {names[i]: rows.column(i) for i in question.used}
                for start in range(0, rows.num_rows, BATCH_ROWS):
                    some = {n: c.slice(start, BATCH_ROWS) for n, c in columns.items()}
                    size = min(BATCH_ROWS, rows.num_rows - start)
                    yield self._wide(size, some, nth)

    def _wide(self, size: int, columns: dict[str, pa.Array], owner: int) -> pa.RecordBatch:
        columns["b"] = pa.array(np.full(size, owner, np.int32))
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(size, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class _AskGroups:
    """Messages, each a version of its own, then the rows of the groups of a part."""

    question: GroupQuestion
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        with carried():
            errand, part = _errand()
            inbox = Inbox()
            seen = size = 0
            for batch in _messages(batches):
                inbox.take(batch)
                yield self._messages(batch, part, seen)
                seen += batch.num_rows
                size += batch.nbytes
            rows = self.question.rows(errand, part, inbox)
            for some in () if rows is None else _cut(rows):
                version = some.column(0).to_numpy() + (part << VERSION_BITS)
                messages = [pa.nulls(some.num_rows, field.type) for field in SCHEMA]
                columns = [*messages, pa.array(version), *some.columns[1:-1]]
                size += some.nbytes
                yield self._wide(columns, some.num_rows)
            sent = Message(part, part, seen, SENT, "", str(size).encode())
            for batch in batches_of([sent]):
                yield self._messages(batch, part, seen)

    def _messages(self, batch: pa.RecordBatch, part: int, seen: int) -> pa.RecordBatch:
        version = -1 - ((part << VERSION_BITS) + seen + np.arange(batch.num_rows))
        return self._wide([*batch.columns, pa.array(version)], batch.num_rows)

    def _wide(self, columns: list[pa.Array], size: int) -> pa.RecordBatch:
        missing = list(self.schema)[len(columns) :]
        columns = [*columns, *(pa.nulls(size, field.type) for field in missing)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


@dataclass(frozen=True)
class _Answered:
    """Answers about groups as messages to the parts whose groups they are; messages as they are."""

    question: GroupQuestion

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        with carried():
            inbox = Inbox()
            found: list[pa.RecordBatch] = []
            for batch in batches:
                passing = batch.num_columns - len(COLUMNS)
                messages = batch.columns[passing:]
                there = messages[3].is_valid()
                inbox.take(pa.RecordBatch.from_arrays(messages, list(COLUMNS)))
                if some := batch.filter(pc.invert(there)):
                    found.append(some.select(range(passing)))
            made = list(self._messages(pa.Table.from_batches(found))) if found else []
            size = sum(len(message.blob) for message in (*inbox, *made))
            sent = Message(0, 0, 0, SENT, "", str(size).encode())
            yield from batches_of((*inbox, *made, sent))

    def _messages(self, answers: pa.Table) -> Iterator[Message]:
        context = TaskContext.get()
        assert context is not None
        kinds = self.question.answer_types
        columns = [whole(c, k) for c, k in zip(answers.columns, kinds, strict=True)]
        version = columns[0].to_numpy()
        owner = version >> VERSION_BITS
        columns[0] = pa.array(version & ((1 << VERSION_BITS) - 1))
        rows = pa.RecordBatch.from_arrays(columns, answers.schema.names)
        message = Message(0, context.partitionId(), 0, ANSWERS, self.question.name, b"")
        for target in np.unique(owner).tolist():
            some = rows.filter(pa.array(owner == target))
            for nth, piece in enumerate(pieces(some)):
                yield message._replace(target=int(target), nth=nth, blob=packed(piece))
