"""By which columns the rows of a step are divided among the parts of a job.

Definition. The rows of a step are *divided by* columns ``c`` if each row is in the part of the
hash of its values of ``c``, in that order. An arrangement by the key ``c`` of these rows then needs
no exchange: every part has its own range of it already. Steps that look at one update at a time
keep a division as far as they keep its columns; operators with a key give the division by that
key. A step may have several: a join is divided by the keys of both sides, which are equal.

Nothing is claimed where it is not certain: an empty set costs an exchange, a wrong one would lose
rows. Cost: the steps of the graph, once per schedule.

Tests: tests/dataflow/test_job_tick.py: random plans, whose results would differ;
tests/dataflow/test_division.py: which exchanges are saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.dataflow.steps.accumulate import Accumulate, Bucketed
from reclock.dataflow.steps.debezium import Floor
from reclock.dataflow.steps.faults import Faults
from reclock.dataflow.steps.linear import FlatMap, Linear
from reclock.dataflow.steps.multiset import Negate, Union
from reclock.dataflow.steps.stateful import Clamp, Join, TopK
from reclock.dataflow.steps.upsert import Upsert
from reclock.sql.plan.scalar import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reclock.dataflow.graph import ArrangementId, Graph, Step

Columns = tuple[int, ...]


class Division:
    """The divisions of the steps of a graph; ``given`` are those that lie in arrangements.

    ``changing`` are the steps that may have rows: others are divided by anything.
    """

    def __init__(
        self, graph: Graph, given: Mapping[int, ArrangementId], changing: Collection[int]
    ) -> None:
        self._graph = graph
        self._given = given
        self._changing = changing
        self._known: dict[int, frozenset[Columns]] = {}

    def allows(self, source: int, name: ArrangementId) -> bool:
        """Return whether the rows of a step lie where an arrangement of them wants them."""
        return self._graph.keying(name).key in self.of(source)

    def of(self, at: int) -> frozenset[Columns]:
        """Return the columns that the rows of a step are divided by."""
        known = self._known.get(at)
        if known is None:
            known = self._known[at] = self._found(at)
        return known

    def _found(self, at: int) -> frozenset[Columns]:
        if at in self._given:
            return frozenset({self._graph.keying(self._given[at]).key})
        step = self._graph.steps[at]
        key = self._key(step)
        return self._kept(step) if key is None else key

    def _key(self, step: Step) -> frozenset[Columns] | None:
        """Return the divisions that an operator with a key gives its rows; None if it has none."""
        match step:
            case Accumulate():
                found = tuple(range(len(step.operator.key)))
            case Clamp():
                found = self._graph.keying(step.state).key
            case TopK():
                found = step.operator.keying.key
            case Upsert():
                found = step.operator.key
            case Floor():
                found = self._graph.keying(step.passing).key
            case Join():
                left, right = step.operator.left, step.operator.right
                return frozenset({left.key, tuple(len(left.types) + i for i in right.key)})
            case _:
                return None
        return frozenset({found})

    def _kept(self, step: Step) -> frozenset[Columns]:
        """Return the divisions that a step keeps that looks at one update at a time."""
        match step:
            case Faults():
                width = len(step.types)
                return frozenset(c for c in self.of(step.source) if all(i < width for i in c))
            case Linear():
                return self._moved(step)
            case Negate() | Bucketed() | FlatMap():
                return self.of(step.source)
            case Union():
                live = [self.of(source) for source in step.inputs if self._is_live(source)]
                return frozenset.intersection(*live) if live else frozenset()
        return frozenset()

    def _is_live(self, at: int) -> bool:
        return at in self._changing or at in self._given

    def _moved(self, step: Linear) -> frozenset[Columns]:
        """Return the divisions whose columns are among the outputs, where they are there."""
        places: dict[int, int] = {}
        for place, output in enumerate(step.outputs):
            if isinstance(output, ColumnRef):
                places.setdefault(output.index, place)
        found = self.of(step.source)
        return frozenset(tuple(places[i] for i in c) for c in found if all(i in places for i in c))
