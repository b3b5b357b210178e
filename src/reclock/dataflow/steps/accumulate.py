"""Aggregates with accumulators, and the stages of a tournament (min, max, top-k).

Accumulate keeps its totals in an arrangement of its own. That is not the sum of any step's delta,
so the step itself returns what to append to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.graph import Output
from reclock.dataflow.operators.minmax import bucketed

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Tick
    from reclock.dataflow.operators.minmax import Stage as StageOperator
    from reclock.dataflow.operators.reduce import Reduce


@dataclass(frozen=True)
class Accumulate:
    """One row per group: its key, and its aggregates."""

    source: int
    state: ArrangementId
    operator: Reduce

    @property
    def inputs(self) -> tuple[int, ...]:
        """The grouped step."""
        return (self.source,)

    @property
    def types(self) -> Types:
        """The key's columns, then one per aggregate."""
        return self.operator.result_types

    def run(self, tick: Tick) -> Output:
        """Add the changes to the totals of their groups."""
        made = self.operator.step(tick.delta(self.source), tick.trace(self.state), tick.first)
        errors = made.errors if made.errors.num_rows else None
        return Output(made.delta, errors, {self.state: made.state})


@dataclass(frozen=True)
class Bucketed:
    """The rows of ``source`` with the bucket of a tournament's first stage."""

    source: int
    bits: int
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The step whose rows compete."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Add the bucket's column."""
        return Output(bucketed(tick.delta(self.source), self.bits))


@dataclass(frozen=True)
class Stage:
    """The winners of each bucket of one stage."""

    source: int
    state: ArrangementId
    operator: StageOperator

    @property
    def inputs(self) -> tuple[int, ...]:
        """The stage before, or the bucketed rows."""
        return (self.source,)

    @property
    def types(self) -> Types:
        """The rows, with the bucket of the next stage if there is one."""
        types = self.operator.keying.types
        return types if self.operator.bits else types[:-1]

    def run(self, tick: Tick) -> Output:
        """Compare the winners of the changed buckets before and after."""
        return Output(self.operator.step(tick.delta(self.source), tick.trace(self.state)))
