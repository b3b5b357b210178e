"""What a tick renews: pending arrangements, derived again for a longer time (``expirations``).

Tests: tests/engine/test_expirations.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.arrangements import Swap
    from reclock.engine.timeline import TimelineState


@dataclass(frozen=True)
class Renewal:
    """Pending arrangements, derived again: the runs that they have now, and their untils."""

    swaps: tuple[Swap, ...] = ()
    untils: Mapping[ArrangementId, int | None] = field(default_factory=dict)

    def applied(self, state: TimelineState) -> TimelineState:
        """Return the state that a tick begins from: with these runs, not published yet."""
        if not self.swaps:
            return state
        runs = dict(state.arrangements.runs)
        for swap in self.swaps:
            later = [ref for ref in runs[swap.arrangement] if ref not in swap.merged]
            runs[swap.arrangement] = (*swap.runs, *later)
        return state.arranged(state.shape, runs, frozenset(), self.untils)


@dataclass(frozen=True)
class Due:
    """What is to be renewed with a tick: until when, and, if it is there already, the runs."""

    untils: Mapping[ArrangementId, int | None] = field(default_factory=dict)
    made: Renewal | None = None
    begins: int | None = None
    """The number of the decisions that a pace keeps to from then on."""
