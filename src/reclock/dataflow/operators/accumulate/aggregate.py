"""An aggregate: the terms it needs, and how to read its result off their totals.

A result that its type cannot hold is not wrong and not NULL: the group has *failed*, its
row is replaced by an error (22003) until the totals are back in range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from reclock.dataflow.operators.accumulate.exact import Exact
    from reclock.dataflow.operators.accumulate.term import Term

    Mask = npt.NDArray[np.bool_]


class Answer(NamedTuple):
    """The results of an aggregate, one per group; ``failed`` says which do not fit, if any."""

    values: pa.Array
    failed: Mask | None = None


class Aggregate(Protocol):
    """An aggregate whose result is a function of exact sums."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is summed; the first is how many values there are."""
        ...

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""
        ...

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the results for the totals of the terms."""
        ...


def present(count: Exact) -> Mask:
    """Return which groups have a value at all; the others' results are NULL."""
    some: Mask = (count.units > 0).astype(np.bool_)
    return some
