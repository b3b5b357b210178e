"""The questions of a stage's steps to Spark, and its answers.

A question is about the rows of one step (all expressions of the stage over them at once) or
about the groups of one step. Before a stage that asks, each part gives the rows that its
questions are about (``RowQuestion``, ``GroupQuestion``); Spark computes; the stage finds the
answers to its part's rows in their order (``Answers``).

Versions of groups are numbered by each part from 0; across parts ``number`` makes them one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.arrangement.stream import concat
from reclock.dataflow.evaluate import Evaluated, RowRequest, answered, computed
from reclock.dataflow.job.message import ANSWERS, Inbox
from reclock.dataflow.job.reader import Reader
from reclock.dataflow.job.schedule import scalars_of
from reclock.dataflow.operators.groups import snapshots
from reclock.dataflow.steps.groups import Groups
from reclock.dataflow.types import arrow_type, arrow_types
from reclock.sql.plan.scalar import ColumnRef, can_fail, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.dataflow.delta import Types
    from reclock.dataflow.evaluate import Answer, Request
    from reclock.dataflow.job.errand import Errand
    from reclock.dataflow.job.schedule import Schedule
    from reclock.sql.plan.scalar import Scalar

VERSION_BITS: Final = 40
"""A part has fewer versions of groups than 2 to this power."""


@dataclass(frozen=True)
class RowQuestion:
    """All expressions of a stage over the rows of one step."""

    schedule: Schedule
    number: int
    source: int

    @cached_property
    def scalars(self) -> tuple[Scalar, ...]:
        """What is computed, each once."""
        graph, plan = self.schedule.graph, self.schedule.stages[self.number]
        steps = (graph.steps[at] for at in plan.asked[self.source])
        return computed(scalar for step in steps for scalar in scalars_of(step))

    @property
    def types(self) -> Types:
        """The types of the columns of the rows."""
        return self.schedule.graph.steps[self.source].types

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The columns that the expressions use."""
        parts = (part for scalar in self.scalars for part in walk(scalar))
        return tuple(sorted({part.index for part in parts if isinstance(part, ColumnRef)}))

    def rows(self, errand: Errand, part: int, inbox: Inbox) -> pa.RecordBatch:
        """Return the rows of a part that it is about."""
        reader = Reader(self.schedule.graph, errand, self.schedule.parts, part, inbox)
        given = self.schedule.given.get(self.source)
        return reader.kept_rows(self.source) if given is None else reader.collection(given)

    def evaluated(self, columns: Sequence[pa.Array]) -> Evaluated:
        """Return an answer from its columns: each value, then its error if it can fail."""
        column = iter(columns)
        pairs = [(next(column), next(column) if can_fail(s) else None) for s in self.scalars]
        return Evaluated(tuple(v for v, _ in pairs), tuple(e for _, e in pairs))

    @property
    def answer_types(self) -> list[pa.DataType]:
        """The types of the columns of an answer."""
        found = []
        for scalar in self.scalars:
            found += [arrow_type(scalar.type), *([pa.string()] if can_fail(scalar) else [])]
        return found


@dataclass(frozen=True)
class GroupQuestion:
    """The rows that the node of a step gives for each version of its groups."""

    schedule: Schedule
    at: int

    @property
    def step(self) -> Groups:
        """The step that asks."""
        step = self.schedule.graph.steps[self.at]
        assert isinstance(step, Groups)
        return step

    @property
    def name(self) -> str:
        """What its answers are called."""
        return f"groups-{self.at}"

    def rows(self, errand: Errand, part: int, inbox: Inbox) -> pa.RecordBatch | None:
        """Return ``version, c0, …, count`` of a part's groups; None if none changed."""
        reader = Reader(self.schedule.graph, errand, self.schedule.parts, part, inbox)
        step = self.step
        rows = reader.collection(step.state)
        if not rows.num_rows:
            return None
        return snapshots(rows, reader.trace(step.state), step.keying).expanded()

    @property
    def answer_types(self) -> list[pa.DataType]:
        """The types of the columns of an answer: version, the node's, the error."""
        return [pa.int64(), *arrow_types(self.step.node.schema), pa.string()]


@dataclass(frozen=True)
class Questions:
    """All that a stage asks."""

    rows: tuple[RowQuestion, ...]
    groups: tuple[GroupQuestion, ...]

    @classmethod
    def of(cls, schedule: Schedule, number: int) -> Questions:
        """Return what the stage ``number`` asks."""
        plan = schedule.stages[number]
        rows = (RowQuestion(schedule, number, source) for source in plan.asked)
        groups = (GroupQuestion(schedule, at) for at in plan.grouped)
        return cls(tuple(q for q in rows if q.scalars), tuple(groups))

    def __bool__(self) -> bool:
        return bool(self.rows or self.groups)


class Answers:
    """The answers for one part of a stage: ``about`` rows by step, of groups from messages."""

    def __init__(self, questions: Questions, about: Mapping[int, Evaluated], inbox: Inbox) -> None:
        self._questions = {question.source: question for question in questions.rows}
        self._groups = {question.at: question for question in questions.groups}
        self._about = about
        self._inbox = inbox

    def to(self, at: int, request: Request) -> Answer:
        """Return the answer to what step ``at`` asks."""
        if isinstance(request, RowRequest):
            return self._about_rows(request)
        question = self._groups[at]
        kinds = question.answer_types
        names = ["version", *(f"c{i}" for i in range(len(kinds) - 2)), "bad"]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        found = self._inbox.batches(ANSWERS, question.name)
        return concat(found) if found else pa.RecordBatch.from_pylist([], schema)

    def _about_rows(self, request: RowRequest) -> Evaluated:
        question = self._questions.get(request.source)
        if question is None:
            return answered(request, (), Evaluated((), ()))
        found = self._about[request.source]
        count = len(found.values[0])
        if count != request.rows.num_rows:
            message = f"{count} answers about {request.rows.num_rows} rows"
            raise AssertionError(message)
        return answered(request, question.scalars, found)
