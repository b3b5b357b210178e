"""bool_and (every) and bool_or: from how many values there are, and how many are true.

NULL if no value is there. Tests: tests/dataflow/test_reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.dataflow.operators.accumulate.aggregate import Answer, present
from reclock.dataflow.operators.accumulate.term import Count, What

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.operators.accumulate.exact import Exact
    from reclock.dataflow.operators.accumulate.term import Term


@dataclass(frozen=True)
class Truth:
    """Whether ``every`` value of a boolean column is true, or else any."""

    column: int
    every: bool
    filter: int | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """How many values, and how many are true."""
        return (
            Count(What.PRESENT, self.column, self.filter),
            Count(What.TRUE, self.column, self.filter),
        )

    @property
    def type(self) -> pa.DataType:
        """Boolean."""
        return pa.bool_()

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the truth values, NULL where there is no value."""
        count, true = totals
        made = (true.units == count.units) if self.every else (true.units > 0)
        return Answer(pa.array(made.astype(np.bool_), mask=~present(count)))
