"""Blocks of the net: a seed is a history of the tables and some queries; what differs is a case."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from model.evaluator import PythonEvaluator
from net.generate import random_query
from net.paths import (
    Kept,
    asked,
    computed,
    directly,
    failed,
    is_known,
    is_loose,
    leaves_of,
    plan_of,
    type_names,
)
from net.tables import SCHEMA, history
from net.tolerated import tolerated
from net.tree import laws
from reclock.errors import Error
from reclock.interval import Interval
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite

if TYPE_CHECKING:
    from net.judge import Answer, Judge
    from net.paths import Leaves
    from net.tables import Contents
    from net.tree import Node
    from reclock.dataflow.evaluate import Evaluator
    from reclock.spark.session import Spark
    from reclock.sql.plan.node import Node as Relation
    from reclock.sql.plan.relation import QueryPlan

NOTHING: Contents = {name: Counter() for name in SCHEMA}
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


def differs(got: Answer | None, wanted: Answer, *, loose: bool) -> bool:
    """Return whether an answer is not PostgreSQL's.

    Which rows a condition, or a column of a subquery, is computed for is the planner's choice,
    theirs as ours, and so is which of several errors is told. Where PostgreSQL fails on a row, ours
    must, too, if PostgreSQL has no choice (``wanted.certain``); where it does not, ours must not,
    unless the plan has one (``loose``). An error that is none of rows is never right.
    """
    if got is None:
        return False
    if got.rows is None and not got.failed:
        return got.code != wanted.code
    if wanted.rows is None:
        return wanted.certain and got.rows is not None
    if got.rows is None:
        return not (loose and got.failed)
    return got.rows != wanted.rows and _spans(got.rows) != _spans(wanted.rows)


def _spans(rows: Counter) -> Counter:
    """Return rows with one of all equal intervals: which of a group is told, is not said."""
    return Counter(
        {tuple(v.span if isinstance(v, Interval) else v for v in row): n for row, n in rows.items()}
    )


def shown(got: Answer | None, wanted: Answer) -> str:
    if got is None or got.rows is None or wanted.rows is None:
        return f"got {got}, wanted {wanted}"
    return f"too many {dict(got.rows - wanted.rows)}, missing {dict(wanted.rows - got.rows)}"


def queries_of(seed: int, count: int, *, wide: bool = False) -> list[Node]:
    return [
        random_query(Random(f"{seed} {number}"), number % 3, wide=wide) for number in range(count)
    ]


class Net:
    """Runs blocks: ``spark`` and ``evaluator`` are given where Spark takes part."""

    def __init__(
        self,
        judge: Judge,
        spark: Spark | None = None,
        evaluator: Evaluator | None = None,
        *,
        wide: bool = False,
    ) -> None:
        self.judge = judge
        self.wide = wide
        self.spark = spark
        self.evaluator = evaluator
        self.report = Report()

    def block(self, seed: int, count: int) -> None:
        """Run the queries of one seed."""
        self.run(queries_of(seed, count, wide=self.wide), history(Random(seed), TIMES))

    def run(self, queries: list[Node], past: list[Contents], only: str | None = None) -> None:
        """Run queries through a history, on all paths or on one."""
        chosen = []
        with tempfile.TemporaryDirectory() as place:
            leaves = leaves_of(past[-1], Path(place))
            for query in queries:
                self.report.counts["queries"] += 1
                chosen += self._chosen(query, past, leaves)
        if not chosen:
            return
        if only in {None, "kept"}:
            known = [c for c in chosen if is_known(c.lowered)]
            self._kept("kept", PythonEvaluator(), known, past)
        if self.spark is not None and only in {None, "asked"}:
            self._asked(chosen, past)
        if self.evaluator is not None and only in {None, "kept by Spark"}:
            self._kept("kept by Spark", self.evaluator, chosen, past)

    def _chosen(self, query: Node, past: list[Contents], leaves: Leaves) -> list[_Chosen]:
        """Return what of a query goes to the expensive paths, after the cheap ones."""
        text = str(query)
        wanted = [self._wanted(query, text, past[-1])]
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
        loose = is_loose(node)
        first = computed(node, past[-1])
        if first is None or not first.failed:  # it computes all columns for all rows
            self._compare("planned", query, text, past, first, wanted[0], loose)
        lowered = rewrite(node, RewriteContext())
        ways = {"rewritten": rewrite(node, RewriteContext(outer_joins=True)), "lowered": lowered}
        for name, made in ways.items():
            self._compare(name, query, text, past, computed(made, past[-1]), wanted[0], loose)
        runs = self._direct(query, text, past, leaves)
        self._compare("direct", query, text, past, runs, wanted[0], loose)
        chosen = [_Chosen(query, text, plan, lowered, wanted[0])]
        twin = query.retold()
        return chosen if twin == text else chosen + self._twin(query, twin, past, wanted[0])

    def _wanted(self, query: Node, text: str, contents: Contents) -> Answer:
        """Return PostgreSQL's answer; an error is certain if what fails are not the rows it is of.

        Constants that fail while a query is planned, be they used or not, do so without rows, too.
        """
        made = self.judge.ask(text, contents)
        if not made.failed or query.rows is None:
            return made
        sound = self.judge.ask(str(query.rows), contents).rows is not None
        return replace(made, certain=sound and self.judge.ask(text, NOTHING).rows is not None)

    def _direct(
        self, query: Node, text: str, past: list[Contents], leaves: Leaves
    ) -> Answer | None:
        try:
            return directly(text, leaves)
        except Error as error:
            return failed(error)
        except Exception as error:
            said = "".join(traceback.format_exception(error)[-3:])
            self.report.cases.append(Case("direct", query, text, past, said))
            return None

    def _twin(self, query: Node, twin: str, past: list[Contents], wanted: Answer) -> list[_Chosen]:
        contents = past[-1]
        self.report.counts.update(laws(query))
        plan = plan_of(twin)
        if isinstance(plan, Error):
            theirs = self.judge.ask(twin, contents)
            alike = theirs.refused or theirs.code[:2] == plan.code[:2]
            if plan.code != NOT_SUPPORTED and not alike:
                said = f"{plan.code} {plan.message}"
                self.report.cases.append(Case("twin", query, twin, past, said))
            return []
        theirs = self.judge.ask(twin, contents)
        if theirs.rows != wanted.rows:
            self.report.counts["PostgreSQL's twin differs"] += 1
            return []
        lowered = rewrite(plan.relation, RewriteContext())
        got = computed(lowered, contents)
        self._compare("twin", query, twin, past, got, wanted, is_loose(plan.relation))
        return [_Chosen(query, twin, plan, lowered, theirs)]

    def _refused(
        self, query: Node, text: str, error: Error, wanted: Answer, past: list[Contents]
    ) -> list[_Chosen]:
        if error.code == NOT_SUPPORTED:
            self.report.counts[f"not supported: {error.message}"] += 1
        elif reason := tolerated(failed(error), text, past[-1]):
            self.report.counts[f"tolerated: {reason}"] += 1
        elif wanted.refused or (wanted.code and wanted.code[:2] == error.code[:2]):
            self.report.counts["both refuse"] += 1
            self.report.counts["refused by other codes"] += wanted.code != error.code
        else:
            said = f"{error.code} {error.message}"
            self.report.cases.append(Case("refused", query, text, past, said, error.code))
        return []

    def _compare(  # noqa: PLR0917
        self, path: str, query: Node, text: str, past: list[Contents], got: Answer | None,
        wanted: Answer, loose: bool,
    ) -> None:  # fmt: skip
        self.report.counts[f"by {path}"] += got is not None
        if reason := tolerated(got, text, past[-1]):
            self.report.counts[f"tolerated: {reason}"] += 1
            return
        if got is not None and wanted.certain:
            self.report.counts["certain errors"] += 1
            if got.code[:2] != wanted.code[:2]:
                self.report.counts[f"{wanted.code} told as {got.code}"] += 1
        if differs(got, wanted, loose=loose):
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
                    if reason := tolerated(got, c.text, past[at]):
                        self.report.counts[f"tolerated: {reason}"] += 1
                        continue
                    if differs(got, wanted, loose=c.loose):
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
                self._compare("asked", c.query, c.text, past, got, c.wanted, c.loose)
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

    @property
    def loose(self) -> bool:
        return is_loose(self.plan.relation)
