"""Temporal: the rows of a step while they are valid, and the updates that wait for their time.

The step evaluates, in one pass, the filters that come before the first temporal predicate (or
cannot fail), the bounds, and its outputs, none of which can fail: what can is computed by a step
above, on the rows that pass, when they pass. An error in a bound is an error row from the time of
its row on, whatever the other parts of the predicate say. What it does with bounds, and at what
cost, is the operator's (``operators.temporal``). It runs in ticks in which something is due,
whether or not its input changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from reclock.dataflow import delta as deltas
from reclock.dataflow import local
from reclock.dataflow.evaluate import RowRequest
from reclock.dataflow.graph import Output
from reclock.dataflow.operators import temporal as operator
from reclock.dataflow.steps.linear import Selection

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.dataflow.delta import Types
    from reclock.dataflow.evaluate import Evaluated
    from reclock.dataflow.graph import ArrangementId, Running, Tick
    from reclock.dataflow.keying import Keying
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.plan.temporal import Bound, Span


@dataclass(frozen=True)
class Temporal:
    """Rows of ``source`` that pass ``filters``, as ``outputs``, at the times of ``spans``."""

    source: int
    pending: ArrangementId
    filters: tuple[Scalar, ...]
    spans: tuple[Span, ...]
    outputs: tuple[Scalar, ...]
    keying: Keying

    @property
    def inputs(self) -> tuple[int, ...]:
        """The step whose rows are looked at."""
        return (self.source,)

    @property
    def types(self) -> Types:
        """The types of the outputs."""
        return self.keying.types

    @cached_property
    def bounds(self) -> tuple[Scalar, ...]:
        """The conditions and bounds of the spans, each once."""
        found = (
            scalar
            for span in self.spans
            for scalar in (*span.conditions, *(b.scalar for b in (*span.lowers, *span.uppers)))
        )
        return tuple(dict.fromkeys(found))

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """What is computed for every row."""
        return (*self.filters, *self.bounds, *self.outputs)

    @cached_property
    def is_local(self) -> bool:
        """Whether Spark is not needed."""
        return all(map(local.is_local, self.scalars))

    def run(self, tick: Tick) -> Running:
        """Emit what begins and ends in this tick, and keep what does later."""
        due = operator.come_due(tick.due(self.pending), self.keying)
        delta = tick.delta(self.source)
        if delta.num_rows == 0:
            return Output(due)
        if self.is_local:
            evaluated = local.evaluated(self.scalars, delta)
        else:
            evaluated = yield RowRequest(self.source, delta, self.scalars)
        kept = Selection(delta.num_rows)
        for at in range(len(self.filters)):
            kept.require(evaluated, at)
        first = len(self.filters)
        for at in range(first, first + len(self.bounds)):
            kept.succeed(evaluated, at)
        kept.fail(operator.overflows(self._limits(evaluated), delta.num_rows), operator.OVERFLOW)
        made = operator.split(
            self._rows(delta, evaluated),
            [self._times(span, kept, evaluated) for span in self.spans],
            self.keying,
            tick.last + 1,
            tick.limits.untils.get(self.pending, operator.FOREVER),
        )
        if made.dropped:
            tick.limits.dropped[self.pending] += made.dropped
        oks = deltas.union([made.now, due])
        return Output(oks, kept.errors(delta), {self.pending: made.pending})

    def _rows(self, delta: pa.RecordBatch, evaluated: Evaluated) -> pa.RecordBatch:
        first = len(self.filters) + len(self.bounds)
        return deltas.build(evaluated.values[first:], *delta.columns[-2:])

    def _limits(self, evaluated: Evaluated) -> list[operator.Limit]:
        bounds = (b for span in self.spans for b in (*span.lowers, *span.uppers))
        return [self._limit(bound, evaluated) for bound in bounds]

    def _limit(self, bound: Bound, evaluated: Evaluated) -> operator.Limit:
        return operator.Limit(self._value(bound.scalar, evaluated), bound.after)

    def _value(self, scalar: Scalar, evaluated: Evaluated) -> pa.Array:
        return evaluated.values[len(self.filters) + self.bounds.index(scalar)]

    def _times(self, span: Span, kept: Selection, evaluated: Evaluated) -> operator.Times:
        present = np.asarray(kept.mask.to_numpy(zero_copy_only=False))
        for condition in span.conditions:
            value = self._value(condition, evaluated).fill_null(False)
            present = present & value.to_numpy(zero_copy_only=False)
        lowers = [self._limit(b, evaluated) for b in span.lowers]
        uppers = [self._limit(b, evaluated) for b in span.uppers]
        return operator.span(present, lowers, uppers, len(present))
