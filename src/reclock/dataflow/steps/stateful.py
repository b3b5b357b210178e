"""Join, Distinct, Threshold and TopK: operators over arranged inputs.

Each is the operator of the same name (``operators``), told which steps bring its deltas and
which arrangements hold what came before. Cost and rules are the operators'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.graph import Output
from reclock.dataflow.operators import threshold as clamps

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Tick
    from reclock.dataflow.operators.join import Join as JoinOperator
    from reclock.dataflow.operators.topk import TopK as TopKOperator


@dataclass(frozen=True)
class Join:
    """The rows of ``left`` and ``right`` with equal keys."""

    left: int
    right: int
    left_state: ArrangementId
    right_state: ArrangementId
    operator: JoinOperator

    @property
    def inputs(self) -> tuple[int, ...]:
        """Both sides."""
        return (self.left, self.right)

    @property
    def types(self) -> Types:
        """The columns of both sides."""
        return self.operator.types

    def run(self, tick: Tick) -> Output:
        """Match the changes of each side with the other side."""
        left, right = tick.delta(self.left), tick.delta(self.right)
        left_trace, right_trace = tick.trace(self.left_state), tick.trace(self.right_state)
        return Output(self.operator.step(left, left_trace, right, right_trace))


@dataclass(frozen=True)
class Clamp:
    """The rows that are there: each once (``distinct``), or as often as it is."""

    source: int
    state: ArrangementId
    types: Types
    distinct: bool

    @property
    def inputs(self) -> tuple[int, ...]:
        """The counted step."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Compare the counts of the changed rows before and after."""
        clamp = clamps.distinct if self.distinct else clamps.threshold
        return Output(clamp(tick.delta(self.source), tick.trace(self.state)))


@dataclass(frozen=True)
class TopK:
    """The first rows of each group."""

    source: int
    state: ArrangementId
    operator: TopKOperator

    @property
    def inputs(self) -> tuple[int, ...]:
        """The step whose rows compete."""
        return (self.source,)

    @property
    def types(self) -> Types:
        """Those of the input."""
        return self.operator.keying.types

    def run(self, tick: Tick) -> Output:
        """Compare the first rows of the changed groups before and after."""
        return Output(self.operator.step(tick.delta(self.source), tick.trace(self.state)))
