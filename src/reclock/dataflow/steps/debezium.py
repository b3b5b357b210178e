"""Fresh, Images and Floor: what ENVELOPE DEBEZIUM is made of.

Records that were sent before are dropped, by partition (``Fresh``); the others become records
with a key, for ``Upsert``, or changes of rows (``Images``), of which those that take away what
is not there are errors (``Floor``). What each does, and at what cost, is the operator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.graph import Output
from reclock.dataflow.operators.floor import floored

if TYPE_CHECKING:
    from reclock.dataflow.delta import Types
    from reclock.dataflow.graph import ArrangementId, Tick
    from reclock.dataflow.operators.fresh import Fresh as FreshOperator
    from reclock.dataflow.operators.images import Images as ImagesOperator


@dataclass(frozen=True)
class Fresh:
    """The records that were not there before; ``passing`` is by partition."""

    source: int
    passing: ArrangementId
    positions: ArrangementId
    operator: FreshOperator
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The records."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Drop what is not beyond the greatest position of its partition."""
        records, state = self.operator.step(tick.delta(self.source), tick.trace(self.positions))
        return Output(records, None, {self.positions: state})


@dataclass(frozen=True)
class Images:
    """Rows before and after as records with a key, or as changes."""

    source: int
    operator: ImagesOperator

    @property
    def inputs(self) -> tuple[int, ...]:
        """The records."""
        return (self.source,)

    @property
    def types(self) -> Types:
        """Records of UPSERT, or rows."""
        return self.operator.types

    def run(self, tick: Tick) -> Output:
        """Look at each record."""
        return Output(*self.operator.step(tick.delta(self.source)))


@dataclass(frozen=True)
class Floor:
    """Rows, none of them less often there than not at all; ``passing`` is by the whole row."""

    source: int
    passing: ArrangementId
    collection: ArrangementId
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The changes."""
        return (self.source,)

    def run(self, tick: Tick) -> Output:
        """Compare the changes with the rows that are there."""
        return Output(*floored(tick.delta(self.source), tick.trace(self.collection)))
