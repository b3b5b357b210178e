"""Exact equality of rows of any type, and the bytes that stand for a row.

Definition. ``row_bytes`` maps rows to bytes such that two rows are equal (as ``layout``
says) exactly when their bytes are. A row is its fixed part, then its tails::

    fixed   per column: is it there (1 byte), then its words, or its length, or its children
    tail    per column: its bytes, or the rows of its elements, one after the other

The fixed part has the same size for every row and holds the length of every tail, so no
two rows run together. ``rows_equal`` compares pairs of rows column by column, and makes
bytes only of nested columns.

Cost: linear in the bytes compared, in numpy and Arrow; no step per row.

Tests: tests/arrangement/test_row.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import (
    as_list,
    is_binary,
    is_fixed,
    list_lengths,
    validity,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Matrix = npt.NDArray[np.uint8]


def rows_equal(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Return, pair by pair, whether the rows of two lists of columns are equal.

    >>> rows_equal([pa.array([1, None, 3])], [pa.array([1, None, 4])]).tolist()
    [True, True, False]
    """
    equal: npt.NDArray[np.bool_] | None = None
    for one, other in zip(left, right, strict=True):
        same = _columns_equal(one, other)
        equal = same if equal is None else equal & same
    if equal is None:
        message = "rows without columns have no length"
        raise ValueError(message)
    return equal


def _columns_equal(one: pa.Array, other: pa.Array) -> npt.NDArray[np.bool_]:
    if pa.types.is_null(one.type):
        return np.ones(len(one), np.bool_)
    if is_fixed(one.type):
        a, b = words(one), words(other)
        same: npt.NDArray[np.bool_] = a[:, 0] == b[:, 0]
        for i in range(1, a.shape[1]):
            same &= a[:, i] == b[:, i]
        there, also = validity(one), validity(other)
        if there is not None or also is not None:
            same &= (True if there is None else there) == (True if also is None else also)
        return same
    if not is_binary(one.type):
        one, other = row_bytes([one]), row_bytes([other])
    equal = pc.fill_null(pc.equal(one, other), False)
    if one.null_count and other.null_count:
        equal = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))
    made: npt.NDArray[np.bool_] = equal.to_numpy(zero_copy_only=False)
    return made


def row_bytes(columns: Sequence[pa.Array]) -> pa.Array:
    """Return one binary value per row, equal exactly when the rows are."""
    fixed: list[Matrix] = []
    tails: list[pa.Array] = []
    for column in columns:
        _encode(column, fixed, tails)
    matrix = np.ascontiguousarray(np.concatenate(fixed, axis=1))
    size, width = matrix.shape
    offsets = np.arange(size + 1, dtype=np.int64) * width
    head = _binary(offsets, pa.py_buffer(matrix))
    if not tails:
        return head
    return pc.binary_join_element_wise(head, *tails, pa.scalar(b"", pa.large_binary()))


def _encode(column: pa.Array, fixed: list[Matrix], tails: list[pa.Array]) -> None:
    """Add the fixed parts and the tails of a column."""
    size = len(column)
    kind = column.type
    valid = validity(column)
    there = np.ones(size, np.uint8) if valid is None else valid.astype(np.uint8)
    fixed.append(there.reshape(size, 1))
    if pa.types.is_null(kind):
        return
    if is_fixed(kind):
        fixed.append(_matrix(words(column)))
    elif is_binary(kind):
        tail = pc.fill_null(column.cast(pa.large_binary()), b"")
        fixed.append(_matrix(pc.binary_length(tail).to_numpy(zero_copy_only=False)))
        tails.append(tail)
    elif pa.types.is_struct(kind):
        for child in column.flatten():  # with the struct's own NULLs
            _encode(child, fixed, tails)
    else:
        lists = as_list(column)
        lengths = list_lengths(lists)
        fixed.append(_matrix(lengths))
        tails.append(_joined(row_bytes([lists.flatten()]), lengths))


def _joined(elements: pa.Array, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Return the bytes of each list: those of its elements, which already lie in order."""
    if len(elements) == 0:
        return pa.array([b""] * len(lengths), pa.large_binary())
    _, raw, data = elements.buffers()
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return _binary(np.frombuffer(raw, np.int64, len(elements) + 1)[starts], data)


def _matrix(numbers: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> Matrix:
    """Return each row of numbers as a row of bytes."""
    width = numbers.itemsize * numbers.size // max(1, len(numbers))
    made: Matrix = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), width)
    return made


def _binary(offsets: npt.NDArray[np.int64], data: pa.Buffer) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), data]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
