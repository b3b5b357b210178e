"""A cluster that is a loop: stages of jobs run part by part in this process, without Spark.

What ``spark.chain`` does with DataFrames, done with lists: messages go to the parts they
name, questions are answered by an evaluator. So the parts of jobs are tested by the thousand
cases. Every part may be run ``twice``, as after a failure: it must do the same both times. So may
tasks that do not know each other (``dataflow.job.tasks``).
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from reclock.dataflow.evaluate import Evaluated, GroupRequest, RowRequest
from reclock.dataflow.job.errand import Errand, received
from reclock.dataflow.job.message import ANSWERS, TOOK, Inbox, Message, packed
from reclock.dataflow.job.part import Part
from reclock.dataflow.job.question import Answers, Questions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.job.schedule import Schedule

Item = TypeVar("Item")


@dataclass(frozen=True)
class LoopTasks:
    """``dataflow.job.tasks.Tasks`` in this process; the last item's task comes first."""

    parallelism: int = 2
    twice: bool = True

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Run every task on a copy of its item."""
        made = []
        for item in reversed(items):
            sent = pickle.dumps((task, item))
            attempts = []
            for _ in range(2 if self.twice else 1):
                copy, given = pickle.loads(sent)
                attempts.append(copy(given))
            if len(set(attempts)) > 1:
                message = "a task did something else when it ran again"
                raise AssertionError(message)
            made.append(attempts[0])
        return made[::-1]


def untimed(messages: list[Message]) -> list[Message]:
    """Return messages without what differs each time."""
    return [message for message in messages if message.kind != TOOK]


@dataclass(frozen=True)
class LoopCluster:
    """``spark.job.Cluster`` in this process."""

    evaluator: Evaluator
    parallelism: int = 2
    twice: bool = False

    def execute(self, schedule: Schedule, errand: Errand) -> list[tuple[int, str, bytes]]:
        """Run all stages, one after the other."""
        text, file = errand.sent()
        messages: list[Message] = []
        for number in range(len(schedule.stages)):
            made = []
            for part in range(schedule.parts.count):
                inbox = Inbox()
                inbox.add(m for m in messages if m.target == part)
                once = self._part(schedule, number, received(text), part, inbox)
                if self.twice:
                    again = self._part(schedule, number, received(text), part, inbox)
                    if untimed(once) != untimed(again):
                        message = f"part {part} of stage {number} did something else"
                        raise AssertionError(message)
                made += once
            messages = made[::-1]  # no order is promised
        if file is not None:
            errand.store.remove(file)
        return [(m.kind, m.name, bytes(m.blob)) for m in messages]

    def _part(
        self, schedule: Schedule, number: int, errand: Errand, part: int, inbox: Inbox
    ) -> list[Message]:
        questions = Questions.of(schedule, number)
        heard = Inbox()
        heard.add(inbox)
        about = {}
        for asked in questions.rows:
            request = RowRequest(asked.source, asked.rows(errand, part, inbox), asked.scalars)
            (found,) = self.evaluator.evaluate([request])
            assert isinstance(found, Evaluated)
            about[asked.source] = found
        for question in questions.groups:
            rows = question.rows(errand, part, inbox)
            if rows is not None:
                (answer,) = self.evaluator.evaluate([GroupRequest(rows, question.step.node)])
                assert isinstance(answer, pa.RecordBatch)
                if answer.num_rows:
                    heard.add([Message(part, part, 0, ANSWERS, question.name, packed(answer))])
        answers = Answers(questions, about, heard)
        return Part(schedule, number, errand, part=part, inbox=heard, answers=answers).run()
