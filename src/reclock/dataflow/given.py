"""The inputs of a first load: the collections that are kept, and their errors.

The rows of a kept collection can be read instead of computed. Its errors too, but they are
those of every step below the view, as one: a new view that reaches two kept views, one made
of the other, or of a common part that fails, must not count the same error twice, or it
would stay when its row is gone. So of kept views with errors only the uppermost count; and
where the errors of two cannot be told apart (a step that may fail is below both, or is run
anyway), those views are not read but computed again.

A source is always read, for its records are gone. It never needs to be computed again: its
steps are those of no other object, so its errors are in question only as a part of those of
views above it, which are then computed from it. So is a view with a refresh schedule: what
it shows is past, and its errors are those of one step that no other object has.

Tests: tests/dataflow/test_envelope_views.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.steps.accumulate import Accumulate
from reclock.dataflow.steps.debezium import Floor, Images
from reclock.dataflow.steps.faults import Faults
from reclock.dataflow.steps.groups import Groups
from reclock.dataflow.steps.linear import FlatMap, Linear
from reclock.dataflow.steps.multiset import Union
from reclock.dataflow.steps.refresh import Refresh
from reclock.dataflow.steps.temporal import Temporal
from reclock.dataflow.steps.upsert import Upsert

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.arrangement.shard import Shard
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.ids import ObjectId


@dataclass(frozen=True)
class Given:
    """The steps whose rows are read, and the kept views whose errors a new view takes over.

    Or delays: then they are those of the arrangement in which they wait.
    """

    steps: Mapping[int, ObjectId]
    errors: Mapping[ArrangementId, frozenset[ObjectId]]

    @classmethod
    def of(
        cls,
        graph: Graph,
        new: frozenset[ArrangementId],
        traces: Mapping[ArrangementId, Shard],
    ) -> Given:
        """Return what the ``new`` arrangements of a graph begin from."""
        made = {at for name in new for at in graph.writers.get(name, ())}
        kept = {
            item for item in (*graph.tables, *graph.views)
            if collection_of(item) not in new and graph.views.get(item) not in made
        }  # fmt: skip
        failed = {
            item for item in kept & graph.views.keys()
            if errors_of(item) in traces and traces[errors_of(item)].rows
        }  # fmt: skip
        while True:
            steps = _steps(graph, kept)
            needed = graph.needed(new, steps)
            errors, doubtful = {}, set()
            for name, cone in graph.faulty.items():
                if name in new:
                    reached = {steps[at] for at in needed & cone & steps.keys()} & failed
                    tops = _uppermost(graph, reached)
                    computed = needed & cone - steps.keys()
                    doubtful |= _doubtful(graph, tops, computed)
                    errors[name] = frozenset(tops)
            if not doubtful:
                return cls(steps, errors)
            kept -= doubtful

    def sources(self, graph: Graph, new: frozenset[ArrangementId]) -> frozenset[ArrangementId]:
        """Return the kept collections that are read to fill ``new`` arrangements."""
        needed = graph.needed(new, self.steps) & self.steps.keys()
        return frozenset(collection_of(self.steps[at]) for at in needed)


def _steps(graph: Graph, kept: set[ObjectId]) -> dict[int, ObjectId]:
    """Return the steps that give the rows of kept objects, and the references to them."""
    items = (*graph.tables.items(), *graph.views.items())
    found = {step: item for item, step in items if item in kept}
    for at, step in enumerate(graph.steps):
        if isinstance(step, Union) and len(step.inputs) == 1 and step.inputs[0] in found:
            found[at] = found[step.inputs[0]]
    return found


def _uppermost(graph: Graph, views: set[ObjectId]) -> set[ObjectId]:
    """Return the views that no other one is made of."""
    cones = {view: graph.faulty[errors_of(view)] for view in views}
    return {v for v in views if not any(cones[v] < cone for cone in cones.values())}


def _doubtful(graph: Graph, views: set[ObjectId], computed: Iterable[int]) -> set[ObjectId]:
    """Return the views whose errors are partly those of another view, or of computed steps."""
    seen: dict[int, set[ObjectId | None]] = {at: {None} for at in computed}
    for view in views:
        for at in graph.faulty[errors_of(view)]:
            seen.setdefault(at, set()).add(view)
    found: set[ObjectId] = set()
    for at, owners in seen.items():
        if len(owners) > 1 and _may_fail(graph, at):
            found |= {owner for owner in owners if owner is not None}
    return found


def _may_fail(graph: Graph, at: int) -> bool:
    step = graph.steps[at]
    safe = isinstance(step, Linear) and step.is_local and not step.can_fail
    computes = isinstance(step, Accumulate | Groups | Linear | FlatMap) and not safe
    return computes or isinstance(step, Faults | Upsert | Images | Floor | Temporal | Refresh)
