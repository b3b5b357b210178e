"""The schedule of a job: the stage of each step, and the exchanges between stages.

A step runs in the first stage in which all of its inputs can be had:

* what is ``given`` (collections that are kept, or in a tick the changes of tables and the
  records of sources) can be read in every stage, by parts;
* a step that looks at one update at a time takes the rows its part has, so it runs where its
  inputs do; but if its expressions are Spark's, one stage later: Spark computes them between
  the two;
* an operator with a key takes its input by ranges of that key: from an arrangement that is
  kept, at once; otherwise one stage after the step whose rows are to be exchanged;
* accumulators exchange partial totals instead of rows;
* rows that lie where the key wants them are not exchanged (``division``): the operator runs in
  the stage of its input;
* what was there before the job, in files, is exchanged in the stage before the first operator that
  needs it: sent earlier, it would pass through every shuffle between.

An arrangement is complete, and its runs are written, one stage after its source ran, or in the same
stage if nothing is exchanged. Errors are written where they are made: runs of one interval whose
hashes overlap are read as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from reclock.dataflow.graph import collection_of, delayed_of, errors_of, is_delayed
from reclock.dataflow.job.division import Division
from reclock.dataflow.job.message import EXCHANGED, ROWS
from reclock.dataflow.steps.accumulate import Accumulate, Stage
from reclock.dataflow.steps.debezium import Floor, Fresh
from reclock.dataflow.steps.faults import rows_steps
from reclock.dataflow.steps.groups import Groups
from reclock.dataflow.steps.linear import FlatMap, Linear
from reclock.dataflow.steps.stateful import Clamp, Join, TopK
from reclock.dataflow.steps.temporal import Temporal
from reclock.dataflow.steps.upsert import Upsert

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reclock.dataflow.given import Given
    from reclock.dataflow.graph import ArrangementId, Graph, Step
    from reclock.dataflow.job.parts import Parts
    from reclock.ids import ObjectId
    from reclock.sql.plan.scalar import Scalar

Passed: TypeAlias = Fresh | Upsert | Floor
Grouped: TypeAlias = Clamp | TopK | Stage | Groups | Passed
Keyed: TypeAlias = Join | Grouped


@dataclass
class StagePlan:
    """What every task of one stage does, for its part."""

    steps: list[int] = field(default_factory=list)
    asked: dict[int, list[int]] = field(default_factory=dict)
    """Steps of this stage with expressions, by the step whose rows they look at."""
    grouped: list[int] = field(default_factory=list)
    """Steps of this stage whose groups Spark computes."""
    exchanged: dict[ArrangementId, int] = field(default_factory=dict)
    """What to arrange for the next stages, and the step whose rows or totals it is of."""
    placed: dict[ArrangementId, int] = field(default_factory=dict)
    """What is arranged in this stage without an exchange, and the step whose rows it is of."""
    carried: set[ArrangementId] = field(default_factory=set)
    """What of it a task of a later stage reads, for the same part."""
    errors: dict[ArrangementId, list[int]] = field(default_factory=dict)
    """The steps of this stage whose errors are those of a view, or are delayed."""
    kept_errors: dict[ArrangementId, frozenset[ObjectId]] = field(default_factory=dict)
    """The kept views whose errors are those of a view, in the first stage."""
    kept: set[int] = field(default_factory=set)
    """The steps whose rows a task of a later stage reads again, for the same part."""
    finished: set[ArrangementId] = field(default_factory=set)
    """The new arrangements that are complete, and written."""

    @property
    def sends(self) -> bool:
        """Whether parts send something to other parts."""
        return bool(self.exchanged or self.delayed_errors)

    @property
    def delayed_errors(self) -> list[ArrangementId]:
        """The errors that a step of a later stage takes in; others are written here."""
        return sorted(name for name in {**self.errors, **self.kept_errors} if is_delayed(name))


@dataclass(frozen=True)
class Schedule:
    """The stages that compute the updates of ``new`` arrangements of a graph, in parts."""

    graph: Graph
    parts: Parts
    new: frozenset[ArrangementId]
    given: Mapping[int, ArrangementId]
    """Steps whose rows are there, and how they lie."""
    steps: frozenset[int]
    """Those that run."""
    stages: tuple[StagePlan, ...]

    @classmethod
    def of_load(
        cls, graph: Graph, parts: Parts, new: frozenset[ArrangementId], given: Given
    ) -> Schedule:
        """Return how to fill new arrangements, or to bring them up to date."""
        steps = frozenset(graph.needed(new, given.steps) - given.steps.keys())
        collections = {at: collection_of(item) for at, item in given.steps.items()}
        stages = _Scheduler(graph, new, collections, given.errors, steps).stages()
        return cls(graph, parts, new, collections, steps, stages)

    @classmethod
    def of_tick(
        cls,
        graph: Graph,
        parts: Parts,
        changed: Collection[ObjectId],
        due: Collection[ArrangementId] = (),
        adopted: Collection[ObjectId] = (),
    ) -> Schedule:
        """Return how to bring every arrangement up to date with changes from outside.

        ``due`` are those of which updates waited for a time of this tick, ``adopted`` the sources
        whose changes are rows, and runs of their collections already.
        """
        given = dict(map(graph.entry, set(changed).difference(adopted)))
        for item in adopted:
            given |= dict.fromkeys(rows_steps(graph, item), collection_of(item))
        live = set(given)
        for at, step in enumerate(graph.steps):
            if graph.waiting.get(at) in due or not live.isdisjoint(step.inputs):
                live.add(at)
        steps = frozenset(live - given.keys())
        touched = {
            name for name, arrangement in graph.arrangements.items()
            if arrangement.source in live or not live.isdisjoint(graph.writers.get(name, ()))
        }  # fmt: skip
        there = set(map(collection_of, adopted))
        tables = (graph.arrangements.keys() & given.values()) - there
        new = frozenset(touched - tables - there)
        scheduler = _Scheduler(graph, new, given, {}, steps)
        return cls(graph, parts, new | tables, given, steps, scheduler.stages(finished=tables))

    @property
    def spark_stages(self) -> int:
        """How many stages Spark has: those that follow a shuffle, and two more for groups."""
        shuffles = sum(plan.sends for plan in self.stages[:-1])
        return 1 + shuffles + 2 * sum(len(plan.grouped) for plan in self.stages)

    @cached_property
    def last_uses(self) -> Mapping[tuple[int, str], int]:
        """The last stage that reads each message, by its kind and name."""
        found: dict[tuple[int, str], int] = {}

        def use(kind: int, name: object, number: int) -> None:
            found[kind, str(name)] = max(number, found.get((kind, str(name)), -1))

        for number, plan in enumerate(self.stages):
            for name in plan.finished:
                use(EXCHANGED, name, number)
            for source in plan.asked:
                use(ROWS, source, number)
            for at in (*plan.exchanged.values(), *plan.kept):
                use(ROWS, at, number)
            for at in (*plan.steps, *plan.exchanged.values()):
                step = self.graph.steps[at]
                for source in step.inputs:
                    use(ROWS, source, number)
                if isinstance(step, Accumulate):
                    use(EXCHANGED, step.state, number)
                elif isinstance(step, Keyed):
                    for _, name in keyed_inputs(step):
                        use(EXCHANGED, name, number)
                if at in self.graph.delayed:
                    use(EXCHANGED, delayed_of(self.graph.delayed[at]), number)
        return found


def keyed_inputs(step: Keyed) -> tuple[tuple[int, ArrangementId], ...]:
    """Return the inputs of an operator with a key, and how each must be arranged."""
    if isinstance(step, Join):
        return (step.left, step.left_state), (step.right, step.right_state)
    if isinstance(step, Passed):
        return ((step.source, step.passing),)
    return ((step.source, step.state),)


def scalars_of(step: Step) -> tuple[Scalar, ...]:
    """Return the expressions that Spark evaluates for the rows of a step's input."""
    if isinstance(step, FlatMap | Temporal | Linear) and not step.is_local:
        return step.scalars
    return ()


class _Scheduler:
    def __init__(
        self,
        graph: Graph,
        new: frozenset[ArrangementId],
        given: Mapping[int, ArrangementId],
        kept_errors: Mapping[ArrangementId, frozenset[ObjectId]],
        steps: frozenset[int],
    ) -> None:
        self._graph = graph
        self._new = new
        self._given = given
        self._kept_errors = kept_errors
        self._steps = steps
        self._made: dict[int, int] = {}
        self._stages: list[StagePlan] = []
        self._division = Division(graph, given, steps)
        groups = (graph.steps[at] for at in steps)
        self._asked_about = {step.state for step in groups if isinstance(step, Groups)}
        """Spark is asked about them before their stage, so they are exchanged."""

    def stages(self, finished: Collection[ArrangementId] = ()) -> tuple[StagePlan, ...]:
        """Return the plans; what is ``finished`` needs only be written, in the first one."""
        self._stage(0).finished.update(finished)
        for at in sorted(self._steps):
            self._place(at)
        for name in sorted(self._new):
            source = self._graph.arrangements[name].source
            if source is not None:
                self._exchange(source, name)
        for name in map(errors_of, self._graph.views):
            if name in self._new:
                self._errors(name, name)
        self._postpone()
        return tuple(self._stages)

    def _postpone(self) -> None:
        """Exchange what was there before the job when it is needed, and not before."""
        first: dict[ArrangementId, int] = {}
        for number, plan in enumerate(self._stages):
            for step in map(self._graph.steps.__getitem__, plan.steps):
                if isinstance(step, Keyed):
                    for _, name in keyed_inputs(step):
                        first.setdefault(name, number)
        early = self._stages[0]
        for name, source in [*early.exchanged.items()]:
            number = first.get(name, 1)
            if source in self._given and number > 1:
                del early.exchanged[name]
                self._stages[number - 1].exchanged[name] = source
                if name in self._new:
                    self._stages[1].finished.discard(name)
                    self._stages[number].finished.add(name)

    def _stage(self, number: int) -> StagePlan:
        while len(self._stages) <= number:
            self._stages.append(StagePlan())
        return self._stages[number]

    def _place(self, at: int) -> None:
        """Decide the stage of a step whose inputs are placed."""
        step = self._graph.steps[at]
        if isinstance(step, Accumulate):
            number = self._made.get(step.source, 0)
            if not self._stays(step.source, step.state):
                self._stage(number).exchanged[step.state] = at
                number += 1
        elif isinstance(step, Keyed):
            number = max(self._arranged(*pair) for pair in keyed_inputs(step))
            for source, name in keyed_inputs(step):
                self._carry(source, name, number)
            if isinstance(step, Groups):
                self._stage(number).grouped.append(at)
        elif scalars_of(step):
            (source,) = step.inputs
            number = self._asked(source, at)
        else:
            number = max((self._made.get(i, 0) for i in step.inputs), default=0)
            if at in self._graph.delayed:
                pending = self._graph.delayed[at]
                number = max(number, self._errors(pending, delayed_of(pending)))
            for source in step.inputs:
                self._keep(source, number)
        self._made[at] = number
        self._stage(number).steps.append(at)

    def _asked(self, source: int, at: int) -> int:
        """Return the stage in which Spark has computed a step over the rows of another one."""
        if source not in self._given and source not in self._made:
            return 0  # it does not change: there is nothing to ask
        number = 0 if source in self._given else self._made[source] + 1
        self._stage(number).asked.setdefault(source, []).append(at)
        self._keep(source, number)
        return number

    def _keep(self, source: int, number: int) -> None:
        if source in self._made and self._made[source] < number:
            self._stage(self._made[source]).kept.add(source)

    def _arranged(self, source: int, name: ArrangementId) -> int:
        """Return the stage in which a step's rows can be read by an arrangement's key."""
        if source not in self._made and (source not in self._given or name not in self._new):
            return 0  # it does not change, or lies there
        return self._exchange(source, name)

    def _exchange(self, source: int, name: ArrangementId) -> int:
        made = self._made.get(source, 0)
        if self._stays(source, name):
            self._stage(made).placed[name] = source
        else:
            self._stage(made).exchanged[name] = source
            made += 1
        if name in self._new:
            self._stage(made).finished.add(name)
        return made

    def _carry(self, source: int, name: ArrangementId, number: int) -> None:
        """Have a stage find what an earlier one arranged without an exchange."""
        made = self._stage(self._made.get(source, 0))
        if name in made.placed and made is not self._stage(number):
            made.carried.add(name)

    def _stays(self, source: int, name: ArrangementId) -> bool:
        """Return whether the rows of a step lie where an arrangement of them wants them."""
        return name not in self._asked_about and self._division.allows(source, name)

    def _errors(self, name: ArrangementId, to: ArrangementId) -> int:
        """Gather the errors of all steps, and those that kept views bring along, as ``to``.

        Return the stage in which they can be read, if they are exchanged.
        """
        if self._kept_errors.get(name):
            self._stage(0).kept_errors[to] = self._kept_errors[name]
        last = 0
        for at in sorted(self._graph.faulty[name] & self._made.keys()):
            last = max(last, self._made[at])
            self._stage(self._made[at]).errors.setdefault(to, []).append(at)
        return last + 1
