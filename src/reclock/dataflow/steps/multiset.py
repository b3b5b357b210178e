"""Union and Negate: sums and opposites of deltas. Cost: the change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import Output

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import Tick


@dataclass(frozen=True)
class Union:
    """All updates of all members."""

    inputs: tuple[int, ...]
    types: Types

    def run(self, tick: Tick) -> Output:
        """Concatenate."""
        return Output(deltas.union([tick.delta(source) for source in self.inputs]))


@dataclass(frozen=True)
class Negate:
    """Every update with the opposite sign."""

    source: int
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The negated step."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Change the sign."""
        return Output(deltas.negate(tick.delta(self.source)))
