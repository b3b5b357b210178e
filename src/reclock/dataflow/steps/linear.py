"""Project, Filter and their chains, and FlatMap: what looks at one update at a time.

A chain of filters and projections over one step is one step: all its expressions are over
the columns the chain begins with, so Spark evaluates them side by side in one pass, with
those of every other view that has the same input. Filters are tried in order: an error in
an expression counts only for rows that passed the filters before it. A row with an error
leaves the data and becomes an error row at its time with its diff, so it is retracted with
the row that caused it (P9). Chains whose expressions are all ``local`` need no Spark. Cost: the
change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow import delta as deltas
from reclock.dataflow import local
from reclock.dataflow.error_rows import parts_of
from reclock.dataflow.evaluate import RowRequest
from reclock.dataflow.graph import Output
from reclock.dataflow.operators.flatmap import explode
from reclock.dataflow.values import from_python
from reclock.sql.plan.scalar import ColumnRef, Literal, can_fail

if TYPE_CHECKING:
    import numpy.typing as npt

    from reclock.dataflow.delta import Types
    from reclock.dataflow.evaluate import Evaluated
    from reclock.dataflow.graph import Running, Tick
    from reclock.sql.plan.scalar import Scalar


@dataclass(frozen=True)
class Linear:
    """Rows of ``source`` that pass ``filters``, tried in order, projected to ``outputs``."""

    source: int
    filters: tuple[Scalar, ...]
    outputs: tuple[Scalar, ...]
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The step whose rows are looked at."""
        return (self.source,)

    @cached_property
    def moves(self) -> tuple[int | pa.Array, ...] | None:
        """Where each output column comes from, or its constant, if nothing is computed."""
        made: list[int | pa.Array] = []
        for output in self.outputs:
            if isinstance(output, ColumnRef):
                made.append(output.index)
            elif isinstance(output, Literal):
                made.append(from_python([output.value], output.type))
        return tuple(made) if len(made) == len(self.outputs) and not self.filters else None

    @cached_property
    def is_local(self) -> bool:
        """Whether Spark is not needed."""
        return all(map(local.is_local, self.scalars))

    @cached_property
    def can_fail(self) -> bool:
        """Whether some row could be an error."""
        return any(map(can_fail, self.scalars))

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """What is computed for every row."""
        return (*self.filters, *self.outputs)

    def run(self, tick: Tick) -> Running:
        """Filter and project the delta."""
        delta = tick.delta(self.source)
        if self.moves is not None:
            return Output(deltas.permute(delta, self.moves))
        if self.is_local:
            evaluated = local.evaluated(self.scalars, delta)
        else:
            evaluated = yield RowRequest(self.source, delta, self.scalars)
        kept = Selection(delta.num_rows)
        for at in range(len(self.filters)):
            kept.require(evaluated, at)
        first = len(self.filters)
        columns = range(first, first + len(self.outputs))
        for at in columns:
            kept.succeed(evaluated, at)
        rows = [evaluated.values[at].filter(kept.mask) for at in columns]
        times = [column.filter(kept.mask) for column in delta.columns[-2:]]
        return Output(deltas.build(rows, *times), kept.errors(delta))


@dataclass(frozen=True)
class FlatMap:
    """For each row of ``source`` one row per element of ``array``."""

    source: int
    array: Scalar
    ordinality: bool
    types: Types

    @property
    def inputs(self) -> tuple[int, ...]:
        """The step whose rows are unnested."""
        return (self.source,)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """What is computed for every row."""
        return (self.array,)

    @cached_property
    def is_local(self) -> bool:
        """Whether Spark is not needed."""
        return local.is_local(self.array)

    def run(self, tick: Tick) -> Running:
        """Compute the lists, and unnest them."""
        delta = tick.delta(self.source)
        if self.is_local:
            evaluated = local.evaluated(self.scalars, delta)
        else:
            evaluated = yield RowRequest(self.source, delta, self.scalars)
        kept = Selection(delta.num_rows)
        kept.succeed(evaluated, 0)
        rows = [*deltas.rows_of(delta), evaluated.values[0]]
        listed = deltas.build(rows, *delta.columns[-2:]).filter(kept.mask)
        exploded = explode(listed, len(rows) - 1, ordinality=self.ordinality)
        return Output(exploded, kept.errors(delta))


class Selection:
    """Which rows are still in, and the first error of those that failed."""

    def __init__(self, size: int) -> None:
        self._in: npt.NDArray[np.bool_] = np.ones(size, np.bool_)
        self._failed: list[tuple[npt.NDArray[np.bool_], pa.Array]] = []

    @property
    def mask(self) -> pa.Array:
        """The rows that are in."""
        return pa.array(self._in)

    def succeed(self, evaluated: Evaluated, at: int) -> None:
        """Take out the rows for which expression ``at`` is an error."""
        error = evaluated.errors[at]
        if error is None or error.null_count == len(error):
            return
        failed = self._in & pc.is_valid(error).to_numpy(zero_copy_only=False)
        self._failed.append((failed, error))
        self._in &= ~failed

    def fail(self, failed: npt.NDArray[np.bool_], error: str) -> None:
        """Take out the rows of a mask, with this error (``SQLSTATE|message``)."""
        there = self._in & failed
        if there.any():
            self._failed.append((there, pa.array([error] * len(there), pa.string())))
            self._in &= ~there

    def require(self, evaluated: Evaluated, at: int) -> None:
        """Keep the rows for which predicate ``at`` is true; NULL is not."""
        self.succeed(evaluated, at)
        value = pc.fill_null(evaluated.values[at], False)
        self._in &= value.to_numpy(zero_copy_only=False)

    def errors(self, delta: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the error rows: code and message, at the time and with the diff of the row."""
        found = []
        for failed, error in self._failed:
            mask = pa.array(failed)
            times = [column.filter(mask) for column in delta.columns[-2:]]
            found.append(deltas.build(parts_of(error.filter(mask)), *times))
        return deltas.union(found) if found else None
