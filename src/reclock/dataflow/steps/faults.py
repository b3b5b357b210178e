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
    from reclock.dataflow.graph import Tick


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
