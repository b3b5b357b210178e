"""count(*) and count(x): the rows of a group, or those where x is not NULL.

Tests: tests/dataflow/test_reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from reclock.dataflow.operators.accumulate.aggregate import Answer
from reclock.dataflow.operators.accumulate.term import Count, What

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.operators.accumulate.exact import Exact
    from reclock.dataflow.operators.accumulate.term import Term


@dataclass(frozen=True)
class Counted:
    """The number of rows; of those where ``column`` is not NULL, and ``filter`` is true."""

    column: int | None = None
    filter: int | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """One count."""
        what = What.ROWS if self.column is None else What.PRESENT
        return (Count(what, self.column, self.filter),)

    @property
    def type(self) -> pa.DataType:
        """Bigint."""
        return pa.int64()

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the count; never NULL."""
        return Answer(self.terms[0].store(totals[0]))
