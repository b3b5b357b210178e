"""Upsert: the last row of each key of a source (ENVELOPE UPSERT, or DEBEZIUM with a key).

What it does, and at what cost, is the operator's (``operators.upsert``). Records are exchanged
by the key; what came before is the collection of the source itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.graph import Output

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Tick
    from reclock.dataflow.operators.upsert import Upsert as UpsertOperator


@dataclass(frozen=True)
class Upsert:
    """One row per key; ``passing`` is how its records are divided among workers."""

    source: int
    passing: ArrangementId
    collection: ArrangementId
    faults: ArrangementId
    operator: UpsertOperator

    @property
    def inputs(self) -> tuple[int, ...]:
        """The records."""
        return (self.source,)

    @property
    def types(self) -> Types:
        """The columns of the row."""
        return self.operator.types

    def run(self, tick: Tick) -> Output:
        """Put the last record of each key in the place of what it had."""
        traces = tick.trace(self.collection), tick.trace(self.faults)
        made = self.operator.step(tick.delta(self.source), *traces)
        errors = made.errors if made.errors.num_rows else None
        return Output(made.delta, errors, {self.faults: made.faults})
