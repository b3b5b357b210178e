"""Casts between numbers, between dates and times, and to text.

Halves are rounded away from zero; a value that does not fit is an error. Spark casts texts and
floats.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.decimals import fitted
from reclock.dataflow.local.moments import TIMES
from reclock.dataflow.local.piece import Kernel, Piece, columns, plain, refused
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t
from reclock.sql.plan.functions.overload import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.types import Type

_DIGITS: Final = {t.SMALLINT: 5, t.INTEGER: 10, t.BIGINT: 19}
_PLAIN_SCALE: Final = 6
"""Arrow writes smaller decimals as 1E-7."""


def kernel_of(source: Type, target: Type) -> Kernel | None:  # noqa: PLR0911 - one per pair
    """Return the kernel of a cast."""
    if source == target:
        return plain(lambda values: values)
    kind = arrow_type(target)
    if source in t.INTEGERS:
        if target in t.INTEGERS:
            return partial(_narrowed, target, kind)
        if isinstance(target, t.Numeric):
            return partial(_as_numeric, _DIGITS[source], target)
        if target == t.DOUBLE:
            return plain(lambda values: values.cast(kind, safe=False))
        return plain(_written) if target == t.TEXT else None
    if isinstance(source, t.Numeric):
        if isinstance(target, t.Numeric):
            return partial(_rescaled, source, target)
        if target in t.INTEGERS:
            return partial(_rounded, source, target, kind)
        return plain(_written) if target == t.TEXT and source.scale <= _PLAIN_SCALE else None
    if target == t.TEXT and source in {t.BOOLEAN, t.DATE}:
        return plain(_written)
    if target == t.TEXT and source in TIMES:
        return plain(partial(_time_written, "+00" if source == t.TIMESTAMPTZ else ""))
    if source in {*TIMES, t.DATE} and target in {*TIMES, t.DATE}:
        return plain(partial(_time, kind))
    return None


def _written(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _narrowed(target: Type, kind: pa.DataType, arguments: Sequence[Datum]) -> Piece:
    (values,) = columns(arguments)
    limits = np.iinfo(kind.to_pandas_dtype())
    if np.iinfo(values.type.to_pandas_dtype()).max <= limits.max:
        return Piece(values.cast(kind))
    wide = values.cast(pa.int64())
    beyond = pc.or_(pc.less(wide, limits.min), pc.greater(wide, limits.max))
    kept = pc.if_else(beyond, pa.scalar(None, pa.int64()), wide).cast(kind)
    return refused(kept, (beyond, _out_of(target)))


def _out_of(target: Type) -> Failure:
    return Failure("22003", f"{target} out of range")


def _as_numeric(digits: int, target: t.Numeric, arguments: Sequence[Datum]) -> Piece:
    (values,) = columns(arguments)
    exact = values.cast(pa.int64()).cast(pa.decimal128(19, 0))
    if target.precision - target.scale >= digits:
        kind = arrow_type(target)
        wide = pa.decimal256(19 + target.scale, target.scale)
        return Piece(exact.cast(wide).cast(kind, safe=False))
    return fitted(exact.cast(pa.decimal256(19, 0)), target)


def _rescaled(source: t.Numeric, target: t.Numeric, arguments: Sequence[Datum]) -> Piece:
    (values,) = columns(arguments)
    whole = source.precision - source.scale
    if target.scale >= source.scale and target.precision - target.scale >= whole:
        return Piece(values.cast(arrow_type(target)))
    return fitted(values.cast(pa.decimal256(source.precision, source.scale)), target)


def _rounded(
    source: t.Numeric, target: Type, kind: pa.DataType, arguments: Sequence[Datum]
) -> Piece:
    (values,) = columns(arguments)
    wide = values.cast(pa.decimal256(source.precision + 1, source.scale))
    whole = pc.round(wide, ndigits=0, round_mode="half_towards_infinity")
    limits = np.iinfo(kind.to_pandas_dtype())
    digits = pa.decimal256(40, 0)
    beyond = pc.or_(
        pc.less(whole, pa.scalar(Decimal(int(limits.min)), digits)),
        pc.greater(whole, pa.scalar(Decimal(int(limits.max)), digits)),
    )
    kept = pc.if_else(beyond, pa.scalar(None, whole.type), whole)
    found = kept.cast(pa.decimal256(76, 0), safe=False).cast(pa.decimal128(38, 0), safe=False)
    return refused(found.cast(pa.int64()).cast(kind), (beyond, _out_of(target)))


def _time(kind: pa.DataType, values: pa.Array) -> pa.Array:
    if pa.types.is_date(values.type):
        return values.cast(pa.timestamp("us")).cast(kind)
    naive = values.cast(pa.timestamp("us"))
    if not pa.types.is_date(kind):
        return naive.cast(kind)
    return pc.floor_temporal(naive, unit="day").cast(kind)


def _time_written(zone: str, values: pa.Array) -> pa.Array:
    """Write times with as many digits of seconds as they have."""
    text = values.cast(pa.timestamp("us")).cast(pa.string())
    whole = pc.ends_with(text, ".000000")
    cut = pc.replace_substring_regex(text, r"0+$", "")
    made = pc.if_else(whole, pc.utf8_slice_codeunits(text, 0, -7), cut)
    return pc.binary_join_element_wise(made, zone, "") if zone else made
