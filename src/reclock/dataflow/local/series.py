"""Series: ``generate_series`` by a constant step, as one list for each row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.dataflow.local.moments import TIMES
from reclock.dataflow.local.piece import Kernel, Piece, columns, numbers, refused, valid
from reclock.dataflow.types import arrow_type
from reclock.interval import DAY, Interval
from reclock.sql import types as t
from reclock.sql.plan.functions.length import MAX_SERIES, TOO_LONG
from reclock.sql.plan.scalar import Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call, Scalar

_FAR = 2**62


def kernel_of(call: Call) -> Kernel | None:
    """Return the kernel of a series."""
    if call.function.name != "generate_series" or not isinstance(call.type, t.Array):
        return None
    step = _step(call.arguments[2], call.type.element) if len(call.arguments) == 3 else 1
    return None if not step else partial(_series, step, arrow_type(call.type))


def _step(scalar: Scalar, kind: t.Type) -> int | None:
    if not isinstance(scalar, Literal):
        return None
    value = scalar.value
    if isinstance(value, Interval) and kind in TIMES and not value.months:
        micros = value.days * DAY + value.microseconds
        return micros if abs(micros) < _FAR else None
    return value if isinstance(value, int) and abs(value) < _FAR else None


def _series(step: int, kind: pa.ListType, arguments: Sequence[Datum]) -> Piece:
    one, other = columns(arguments[:2])
    there = valid([one, other])
    is_time = pa.types.is_timestamp(kind.value_type)
    first, last = (numbers(a, pa.int64() if is_time else None) for a in (one, other))
    # As doubles: the distance of two large numbers has more than 64 bits.
    steps = (last.astype(np.float64) - first.astype(np.float64)) / step
    beyond = steps >= MAX_SERIES
    some = ~beyond & (steps >= 0)
    if there is not None:
        some, beyond = some & there, beyond & there
    first64 = np.where(some, first, 0).astype(np.int64)
    apart = np.where(some, last, 0).astype(np.int64) - first64
    counts = np.where(some, np.abs(apart) // abs(step) + 1, 0)
    ends = np.cumsum(counts)
    place = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    values = np.repeat(first64, counts) + place * step
    elements = pa.array(values).cast(pa.int64())
    inside = elements.view(kind.value_type) if is_time else elements.cast(kind.value_type)
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    none = None if there is None else pa.array(~there)
    found = pa.ListArray.from_arrays(offsets, inside, type=kind, mask=none)
    return refused(found, (pa.array(beyond), TOO_LONG))
