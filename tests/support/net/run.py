"""Blocks of the net: a seed is a history of the tables and some queries; what differs is a case."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from net.generate import random_query
from net.paths import Kept, asked, computed, is_known, plan_of, type_names
from net.tables import history
from net.tree import laws
from reclock.errors import Error
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.testing.evaluator import PythonEvaluator

if TYPE_CHECKING:
    from net.judge import Answer, Judge
    from net.tables import Contents
    from net.tree import Node
    from reclock.dataflow.evaluate import Evaluator
    from reclock.spark.session import Spark
    from reclock.sql.plan.node import Node as Relation
    from reclock.sql.plan.relation import QueryPlan

TIMES = 3
NOT_SUPPORTED = "0A000"
TOO_LONG = "57014"


@dataclass(frozen=True)
class Case:
    """A query for which one of our paths does not answer as PostgreSQL does."""

    path: str
    query: Node
    text: str
    past: list[Contents]
    said: str
    code: str = ""  # of our error, if there is one


@dataclass
class Report:
    """What became of the queries."""

    counts: Counter = field(default_factory=Counter)
    cases: list[Case] = field(default_factory=list)


def differs(got: Answer | None, wanted: Answer) -> bool:
    """Return whether an answer is not PostgreSQL's; where that fails on rows, anything goes."""
    if got is None or wanted.rows is None:
        return False
    return got.rows != wanted.rows


def shown(got: Answer | None, wanted: Answer) -> str:
    if got is None or got.rows is None or wanted.rows is None:
        return f"got {got}, wanted {wanted}"
    return f"too many {dict(got.rows - wanted.rows)}, missing {dict(wanted.rows - got.rows)}"


def queries_of(seed: int, count: int) -> list[Node]:
    return [random_query(Random(f"{seed} {number}"), number % 3) for number in range(count)]


class Net:
    """Runs blocks: ``spark`` and ``evaluator`` are given where Spark takes part."""

    def __init__(
        self, judge: Judge, spark: Spark | None = None, evaluator: Evaluator | None = None
    ) -> None:
        self.judge = judge
        self.spark = spark
        self.evaluator = evaluator
        self.report = Report()

    def block(self, seed: int, count: int) -> None:
        """Run the queries of one seed."""
        self.run(queries_of(seed, count), history(Random(seed), TIMES))

    def run(self, queries: list[Node], past: list[Contents], only: str | None = None) -> None:
        """Run queries through a history, on all paths or on one."""
        chosen = []
        for query in queries:
            self.report.counts["queries"] += 1
            chosen += self._chosen(query, past)
        if not chosen:
            return
        if only in {None, "kept"}:
            known = [c for c in chosen if is_known(c.lowered)]
            self._kept("kept", PythonEvaluator(), known, past)
        if self.spark is not None and only in {None, "asked"}:
            self._asked(chosen, past)
        if self.evaluator is not None and only in {None, "kept by Spark"}:
            self._kept("kept by Spark", self.evaluator, chosen, past)

    def _chosen(self, query: Node, past: list[Contents]) -> list[_Chosen]:
        """Return what of a query goes to the expensive paths, after the cheap ones."""
        text = str(query)
        wanted = [self.judge.ask(text, contents) for contents in past[-1:]]
        plan = plan_of(text)
        if isinstance(plan, Error):
            return self._refused(query, text, plan, wanted[0], past)
        if wanted[0].code == TOO_LONG:
            self.report.counts["too long for PostgreSQL"] += 1
            return []
        if wanted[0].code == NOT_SUPPORTED:  # FULL JOIN on anything, for one
            self.report.counts[f"PostgreSQL has not: {wanted[0].message}"] += 1
            return []
        if wanted[0].refused:
            said = f"PostgreSQL refuses it: {wanted[0].code} {wanted[0].message}"
            self.report.cases.append(Case("accepted", query, text, past, said, wanted[0].code))
            return []
        self.report.counts["answered" if wanted[0].rows is not None else "failing"] += 1
        if wanted[0].rows is not None and type_names(plan) != wanted[0].types:
            said = f"types {type_names(plan)}, not {wanted[0].types}"
            self.report.cases.append(Case("types", query, text, past, said))
        node = plan.relation
        first = computed(node, past[-1])
        self._compare("planned", query, text, past, first, wanted[0])
        lowered = rewrite(node, RewriteContext())
        ways = {"rewritten": rewrite(node, RewriteContext(outer_joins=True)), "lowered": lowered}
        for name, made in ways.items():
            self._compare(name, query, text, past, computed(made, past[-1]), wanted[0])
        twin = query.retold()
        if twin != text:
            self._twin(query, twin, past, wanted[0])
        return [_Chosen(query, text, plan, lowered, wanted[0])]

    def _twin(self, query: Node, twin: str, past: list[Contents], wanted: Answer) -> None:
        contents = past[-1]
        self.report.counts.update(laws(query))
        plan = plan_of(twin)
        if isinstance(plan, Error):
            if plan.code != NOT_SUPPORTED and not self.judge.ask(twin, contents).refused:
                said = f"{plan.code} {plan.message}"
                self.report.cases.append(Case("twin", query, twin, past, said))
            return
        got = computed(rewrite(plan.relation, RewriteContext()), contents)
        if differs(got, wanted) and not differs(got, self.judge.ask(twin, contents)):
            self.report.counts["PostgreSQL's twin differs"] += 1
            return
        self._compare("twin", query, twin, past, got, wanted)

    def _refused(
        self, query: Node, text: str, error: Error, wanted: Answer, past: list[Contents]
    ) -> list[_Chosen]:
        if error.code == NOT_SUPPORTED:
            self.report.counts[f"not supported: {error.message}"] += 1
        elif wanted.refused or wanted.code == error.code:
            self.report.counts["both refuse"] += 1
        else:
            said = f"{error.code} {error.message}"
            self.report.cases.append(Case("refused", query, text, past, said, error.code))
        return []

    def _compare(  # noqa: PLR0917
        self, path: str, query: Node, text: str, past: list[Contents], got: Answer | None,
        wanted: Answer,
    ) -> None:  # fmt: skip
        self.report.counts[f"by {path}"] += got is not None
        if differs(got, wanted):
            said, code = shown(got, wanted), got.code if got else ""
            self.report.cases.append(Case(path, query, text, past, said, code))

    def _kept(
        self, path: str, evaluator: Evaluator, chosen: list[_Chosen], past: list[Contents]
    ) -> None:
        if not chosen:
            return
        plans = [c.lowered for c in chosen]
        for first in (0, len(past) - 1):
            try:
                kept = Kept(plans, evaluator, past, first)
            except Exception as error:
                if len(chosen) == 1:
                    said = "".join(traceback.format_exception(error)[-3:])
                    case = Case(path, chosen[0].query, chosen[0].text, past, said)
                    self.report.cases.append(case)
                    continue
                half = len(chosen) // 2
                self._kept(path, evaluator, chosen[:half], past)
                self._kept(path, evaluator, chosen[half:], past)
                return
            self.report.counts[f"by {path}"] += len(chosen)
            when = "late" if first else "early"
            sound = set(range(len(chosen)))
            for at in range(first, len(past)):
                for number in sorted(sound):
                    c = chosen[number]
                    late = at == len(past) - 1
                    wanted = c.wanted if late else self.judge.ask(c.text, past[at])
                    got = kept.answer(number, at)
                    if differs(got, wanted):
                        said = f"{when}, time {at}: {shown(got, wanted)}"
                        until = past[: at + 1]
                        case = Case(path, c.query, c.text, until, said, got.code)
                        self.report.cases.append(case)
                        sound.remove(number)

    def _asked(self, chosen: list[_Chosen], past: list[Contents]) -> None:
        sound = [c for c in chosen if c.wanted.rows is not None]
        if not sound:
            return
        with tempfile.TemporaryDirectory() as place:
            try:
                answers = asked(self.spark, [c.plan for c in sound], past[-1], Path(place))
            except Exception as error:
                answers = None
                said = "".join(traceback.format_exception(error)[-3:])
        if answers is not None and all(a.rows is not None for a in answers):
            for c, got in zip(sound, answers, strict=True):
                self._compare("asked", c.query, c.text, past, got, c.wanted)
        elif len(sound) == 1:
            said = said if answers is None else f"{answers[0]}"
            self.report.cases.append(Case("asked", sound[0].query, sound[0].text, past, said))
        else:
            half = len(sound) // 2
            self._asked(sound[:half], past)
            self._asked(sound[half:], past)


@dataclass(frozen=True)
class _Chosen:
    query: Node
    text: str
    plan: QueryPlan
    lowered: Relation
    wanted: Answer
