"""Arithmetic of integers: it truncates toward zero, and what does not fit is an error.

Fast where all is well: Arrow's checked functions. If one refuses a batch, numpy looks for the rows
that overflow.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.piece import (
    Kernel,
    Piece,
    columns,
    made,
    numbers,
    plain,
    refused,
    valid,
)
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t
from reclock.sql.plan.functions.patterns import DIVISION_BY_ZERO, OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call

    Ints = npt.NDArray[np.int64]

_CHECKED: Final[dict[str, tuple[Callable[..., pa.Array], Callable[[Any, Any], Any]]]] = {
    "+": (pc.add_checked, operator.add),
    "-": (pc.subtract_checked, operator.sub),
    "*": (pc.multiply_checked, operator.mul),
}
_BITS: Final[dict[str, Callable[..., pa.Array]]] = {
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
    "#": pc.bit_wise_xor,
}
_SIGNS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "-": pc.negate_checked,
    "abs": pc.abs_checked,
}


def kernel_of(call: Call) -> Kernel | None:
    """Return the kernel of an operator on integers of one type."""
    name, kinds = call.function.name, [a.type for a in call.arguments]
    if not kinds or kinds[0] not in t.INTEGERS or any(k != kinds[0] for k in kinds):
        return None
    kind = arrow_type(kinds[0])
    if len(kinds) == 1:
        return partial(_signed, _SIGNS[name], kind) if name in _SIGNS else None
    if name in _CHECKED:
        return partial(_checked, *_CHECKED[name], kind)
    if name == "/":
        return partial(_divided, kind)
    if name == "%":
        return partial(_remainder, kind)
    return plain(_BITS[name]) if name in _BITS else None


def _checked(
    fast: Callable[..., pa.Array],
    exact: Callable[[Any, Any], Any],
    kind: pa.DataType,
    arguments: Sequence[Datum],
) -> Piece:
    try:
        return Piece(fast(*arguments))
    except pa.ArrowInvalid:
        one, other = columns(arguments)
    a, b = numbers(one).astype(np.int64), numbers(other).astype(np.int64)
    with np.errstate(over="ignore"):
        found = exact(a, b)
    wrong = _overflows(exact, a, b, found) if kind == pa.int64() else _outside(found, kind)
    there = valid([one, other])
    kept = np.where(wrong, 0, found).astype(kind.to_pandas_dtype())
    mask = pa.array(wrong if there is None else wrong & there)
    return refused(made(kept, kind, there), (mask, OUT_OF_RANGE))


def _outside(values: Ints, kind: pa.DataType) -> npt.NDArray[np.bool_]:
    limits = np.iinfo(kind.to_pandas_dtype())
    return (values < limits.min) | (values > limits.max)


def _overflows(
    exact: Callable[[Any, Any], Any], a: Ints, b: Ints, found: Ints
) -> npt.NDArray[np.bool_]:
    """Return where 64 bits were too few, of a result that has wrapped around."""
    if exact is operator.add:
        return np.asarray(((a ^ found) & (b ^ found)) < 0)
    if exact is operator.sub:
        return np.asarray(((a ^ b) & (a ^ found)) < 0)
    least = np.iinfo(np.int64).min
    edge = ((a == least) & (b == -1)) | ((b == least) & (a == -1))
    divisor = np.where((b == 0) | (b == -1), 1, b)
    back = np.where((b == 0) | (b == -1), a, found // divisor)
    return np.asarray(edge | ((b != 0) & (back != a)))


def _signed(
    fast: Callable[[pa.Array], pa.Array], kind: pa.DataType, arguments: Sequence[Datum]
) -> Piece:
    (values,) = columns(arguments)
    try:
        return Piece(fast(values))
    except pa.ArrowInvalid:
        least = pc.equal(values, pa.scalar(np.iinfo(kind.to_pandas_dtype()).min, kind))
    kept = pc.if_else(least, pa.scalar(0, kind), values)
    return refused(fast(kept), (least, OUT_OF_RANGE))


def _divided(kind: pa.DataType, arguments: Sequence[Datum]) -> Piece:
    one, other = arguments
    if isinstance(other, pa.Scalar) and other.as_py() not in {None, 0, -1}:
        return Piece(pc.divide(one, other))
    a, b = columns(arguments)
    zero = pc.and_(pc.equal(b, pa.scalar(0, kind)), a.is_valid())
    least = pa.scalar(np.iinfo(kind.to_pandas_dtype()).min, kind)
    beyond = pc.and_(pc.equal(a, least), pc.equal(b, pa.scalar(-1, kind)))
    unsafe = pc.or_kleene(zero, beyond).fill_null(False)
    found = pc.divide(a, pc.if_else(unsafe, pa.scalar(1, kind), b))
    return refused(found, (zero, DIVISION_BY_ZERO), (beyond, OUT_OF_RANGE))


def _remainder(kind: pa.DataType, arguments: Sequence[Datum]) -> Piece:
    a, b = columns(arguments)
    there = valid([a, b])
    divisor = numbers(b)
    zero = divisor == 0 if there is None else (divisor == 0) & there
    rest = np.fmod(numbers(a), np.where((divisor == 0) | (divisor == -1), 1, divisor))
    found = made(rest.astype(kind.to_pandas_dtype()), kind, there)
    return refused(found, (pa.array(zero), DIVISION_BY_ZERO))
