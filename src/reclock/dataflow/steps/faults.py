"""Faults: the rows of a source without keys (ENVELOPE NONE), and its error rows.

What an envelope does is the operator's (``operators.faults``). Cost: the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.graph import Output
from reclock.dataflow.operators.faults import parted

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import Graph, Tick
    from reclock.ids import ObjectId


@dataclass(frozen=True)
class Faults:
    """The records of ``source`` that are rows; the others are errors."""

    source: int
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The records."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Split the faults off."""
        return Output(*parted(tick.delta(self.source), len(self.types)))


def rows_steps(graph: Graph, item: ObjectId) -> frozenset[int]:
    """Return the steps that have the rows of a source without an envelope; none of another one.

    They are the step that splits faults off, and those that stand for the collection.
    """
    at = graph.views[item] if item in graph.sources else None
    if at is None or not isinstance(graph.steps[at], Faults):
        return frozenset()
    return frozenset({at, *(r for r in graph.references if graph.steps[r].inputs == (at,))})
