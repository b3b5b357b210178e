"""A 64-bit hash of rows of any type, the same on every machine and in every version.

It orders the rows of equal key hash inside a run, so that equal rows are neighbours in
every run and merging is a linear pass. It is never trusted: rows are equal when ``row``
says so, and two different rows with one fingerprint cost time, not correctness. But runs
on disk are sorted by it: changing the function changes the format (``run.VERSION``).

Cost: a few numpy passes per word of a row; one hash call for each value longer than
``LONG`` bytes.

Tests: tests/arrangement/test_fingerprint.py.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import is_binary, is_fixed, validity, words
from reclock.arrangement.row import row_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

LONG: Final = 128
"""Values of more bytes are hashed one by one."""

_SEED: Final = np.uint64(0x9E3779B97F4A7C15)
_ODD: Final = np.uint64(0xD6E8FEB86659FD93)
_NULL: Final = np.uint64(0xA0761D6478BD642F)
_SHIFT: Final = np.uint64(32)
_WORD: Final = (1 << 64) - 1


def fingerprint(columns: Sequence[pa.Array], size: int) -> Words:
    """Return a hash of each of ``size`` rows; equal rows have equal ones.

    >>> fingerprint([pa.array([1, 1, 2]), pa.array(["a", "a", "a"])], 3).tolist()
    [8770911658414006797, 8770911658414006797, 3116755845485656699]
    """
    state = np.full(size, _SEED, np.uint64)
    for column in columns:
        _mix_column(state, column)
    return state


def fingerprint_of_integers(values: Iterable[tuple[int, int]]) -> int:
    """Return the hash of one row of whole numbers, each with its width in bytes: without arrays.

    >>> fingerprint_of_integers([(1, 8)]) == int(fingerprint([pa.array([1])], 1)[0])
    True
    """
    state = int(_SEED)
    for value, width in values:
        state ^= value & ((1 << 8 * width) - 1)
        state = state * int(_ODD) & _WORD
        state ^= state >> int(_SHIFT)
    return state


def _mix(state: Words, word: Words) -> None:
    """Stir one word into each state, in place: xor, multiply, fold."""
    state ^= word
    state *= _ODD
    state ^= state >> _SHIFT


def _mix_column(state: Words, column: pa.Array) -> None:
    kind = column.type
    if pa.types.is_null(kind):
        return
    if is_fixed(kind):
        matrix = words(column)
        for i in range(matrix.shape[1]):
            _mix(state, np.ascontiguousarray(matrix[:, i]))
    else:
        _mix(state, _hash_bytes(column if is_binary(kind) else row_bytes([column])))
    valid = validity(column)
    if valid is not None:
        state[~valid] ^= _NULL


def _hash_bytes(column: pa.Array) -> Words:
    """Return a hash of each string of bytes; the empty one's for NULL."""
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    size = len(column)
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    _, raw, data = column.buffers()
    state = np.zeros(size, np.uint64)
    if raw is None or size == 0:
        return state
    dtype = np.int64 if wide else np.int32
    offsets = np.frombuffer(raw, dtype, size + 1, column.offset * np.dtype(dtype).itemsize)
    start = offsets[:-1].astype(np.int64)
    length = np.diff(offsets).astype(np.int64)
    valid = validity(column)
    if valid is not None:
        length = np.where(valid, length, 0)
    _mix(state, length.view(np.uint64))
    if data is None or data.size == 0:
        return state
    text = np.frombuffer(data, np.uint8)
    long = np.flatnonzero(length > LONG)
    state[long] = _hash_long(memoryview(data), start[long], length[long])
    _hash_short(state, text, start, np.where(length > LONG, 0, length))
    return state


def _hash_long(
    data: memoryview, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> Words:
    """Return a hash of each piece of the data; a copy of a state is made quicker than a new one."""
    begun = blake2b(digest_size=8)
    digests = bytearray()
    for begin, end in zip(start.tolist(), (start + length).tolist(), strict=True):
        state = begun.copy()
        state.update(data[begin:end])
        digests += state.digest()
    return np.frombuffer(digests, "<u8")


def _hash_short(
    state: Words,
    text: npt.NDArray[np.uint8],
    start: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
) -> None:
    """Stir in eight bytes at a time of all strings that still have some."""
    # Any eight bytes of the text as a word. The end of the text, where eight bytes do not
    # fit, is read from a padded copy.
    low, high = int(start[0]), int((start + length).max())
    padded = np.concatenate((text[low:high], np.zeros(8, np.uint8)))
    eights = np.ndarray(max(high - low, 0) + 1, "<u8", padded, strides=(1,))
    rows = np.flatnonzero(length)
    at, left, some = start[rows] - low, length[rows], state[rows]
    while rows.size:
        word = eights[at]
        short = np.flatnonzero(left < 8)
        if short.size:
            bits = left[short].astype(np.uint64) * np.uint64(8)
            word[short] &= (np.uint64(1) << bits) - np.uint64(1)
        _mix(some, word)
        more = left > 8
        if not more.all():
            state[rows] = some
            rows, at, left, some = rows[more], at[more], left[more], some[more]
        at += 8
        left -= 8
