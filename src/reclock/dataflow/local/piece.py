"""Pieces: what a kernel makes of rows, and the arithmetic of errors.

A datum is a column, or one value for all rows. An error is ``SQLSTATE|message``, as Spark's texts
have it; None stands for a column of errors in which there is none.

Tests: tests/dataflow/local/test_local.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

    from reclock.sql.plan.functions.overload import Failure

Datum: TypeAlias = pa.Array | pa.Scalar
Mask: TypeAlias = pa.Array | pa.Scalar


class Piece(NamedTuple):
    """The values of an expression, and its errors."""

    value: Datum
    error: pa.Array | None = None


Kernel: TypeAlias = Callable[[Sequence[Datum]], Piece]
"""Computes a function; an argument is a column unless it is constant and another is not."""


def plain(function: Callable[..., pa.Array]) -> Kernel:
    """Return the kernel of a function that cannot fail."""
    return lambda arguments: Piece(function(*arguments))


def column(datum: Datum, size: int) -> pa.Array:
    """Return a datum as a column.

    >>> column(pa.scalar(7), 2).to_pylist()
    [7, 7]
    >>> column(pa.scalar([7]), 0).to_pylist()
    []
    """
    if not isinstance(datum, pa.Scalar):
        return datum
    # Arrow repeats no list 0 times.
    return pa.repeat(datum, size) if size else pa.array([], datum.type)


def columns(arguments: Sequence[Datum]) -> list[pa.Array]:
    """Return all arguments as columns."""
    size = next(len(a) for a in arguments if isinstance(a, pa.Array))
    return [column(a, size) for a in arguments]


def earliest(*errors: pa.Array | None) -> pa.Array | None:
    """Return for each row the first error that it has."""
    there = list(dict.fromkeys(map(id, errors)))
    found = [next(e for e in errors if id(e) == key) for key in there]
    some = [e for e in found if e is not None]
    if not some:
        return None
    return some[0] if len(some) == 1 else pc.coalesce(*some)


def refused(value: pa.Array, *rules: tuple[Mask, Failure]) -> Piece:
    """Return values of which those under a mask are errors instead; NULL in a mask is false.

    >>> from reclock.sql.plan.functions.overload import Failure
    >>> refused(pa.array([1, 2]), (pa.array([False, True]), Failure("22003", "too large")))[1]
    <pyarrow.lib.StringArray object at ...>
    [
      null,
      "22003|too large"
    ]
    """
    found: pa.Array | None = None
    for mask, failure in rules:
        wrong = column(mask, len(value)).fill_null(False)
        if not wrong.true_count:
            continue
        text = pa.scalar(f"{failure.code}|{failure.message}")
        here = pc.if_else(wrong, text, pa.scalar(None, pa.string()))
        found = here if found is None else pc.coalesce(found, here)
    if found is None:
        return Piece(value)
    return Piece(pc.if_else(found.is_valid(), pa.scalar(None, value.type), value), found)


def numbers(values: pa.Array, kind: pa.DataType | None = None) -> npt.NDArray[Any]:
    """Return a column without its NULLs, which are 0, as numpy sees it: no copy if it has none."""
    if kind is not None:
        values = values.view(kind)
    if values.null_count:
        values = values.fill_null(0)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def valid(arguments: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Return where no argument is NULL, or None if that is everywhere."""
    found: npt.NDArray[np.bool_] | None = None
    for argument in arguments:
        if argument.null_count:
            here = np.asarray(argument.is_valid().to_numpy(zero_copy_only=False))
            found = here if found is None else found & here
    return found


def made(
    values: npt.NDArray[Any], kind: pa.DataType, there: npt.NDArray[np.bool_] | None
) -> pa.Array:
    """Return numbers as a column of a type that lies as they do, NULL where nothing is there."""
    mask = None if there is None else ~there
    plain_type = pa.from_numpy_dtype(values.dtype)
    found = pa.array(values, plain_type, mask=mask)
    return found if kind == plain_type else found.view(kind)
