"""Arrow columns as numpy sees them: words, validity, children; one NaN and one zero.

Three shapes cover every SQL type, so that hashing and comparing are written three times
and not once per type::

    fixed     bool, integers, floats, decimals, dates, times, intervals   a few 64-bit words
    binary    strings and bytes                                           a length and bytes
    nested    lists, maps, structs                                        their children

Invariant: what lies under a NULL never shows; words and children of a NULL are zero or
absent. A map is the list of its entries, in their order.

Tests: tests/arrangement/test_column.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

_FIXED_WIDTHS: Final = frozenset({1, 8, 16, 32, 64, 128, 256})
_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def is_fixed(kind: pa.DataType) -> bool:
    """Return whether values of this type are a few machine words.

    >>> is_fixed(pa.decimal128(12, 2)), is_fixed(pa.string()), is_fixed(pa.binary(16))
    (True, False, False)
    """
    t = pa.types
    if t.is_fixed_size_binary(kind) or t.is_dictionary(kind) or t.is_fixed_size_list(kind):
        return False
    try:
        return kind.bit_width in _FIXED_WIDTHS and not t.is_nested(kind)
    except ValueError:  # not a fixed width
        return False


def is_binary(kind: pa.DataType) -> bool:
    """Return whether values of this type are strings of bytes."""
    t = pa.types
    return bool(
        t.is_string(kind)
        or t.is_binary(kind)
        or t.is_large_string(kind)
        or t.is_large_binary(kind)
        or t.is_fixed_size_binary(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Return whether values of this type are lists or maps."""
    t = pa.types
    return bool(
        t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_map(kind)
    )


def is_storable(kind: pa.DataType) -> bool:
    """Return whether equality of this type, and of what is inside it, is known here.

    >>> is_storable(pa.list_(pa.struct([("a", pa.float64())])))
    True
    >>> is_storable(pa.dictionary(pa.int32(), pa.string())), is_storable(pa.string_view())
    (False, False)
    """
    if pa.types.is_map(kind):
        return is_storable(kind.key_type) and is_storable(kind.item_type)
    if is_list(kind):
        return is_storable(kind.value_type)
    if pa.types.is_struct(kind):
        return all(is_storable(kind.field(i).type) for i in range(kind.num_fields))
    return pa.types.is_null(kind) or is_fixed(kind) or is_binary(kind)


def validity(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which values are not NULL; ``None`` when all are."""
    if column.null_count == 0:
        return None
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def words(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a fixed column as an array of 64-bit words, one row per value, NULL as zeros.

    >>> words(pa.array([1, None, 3], pa.int16()))
    array([[1],
           [0],
           [3]], dtype=uint64)
    """
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    size = len(column)
    data = column.buffers()[1]
    dtype = _UNSIGNED.get(width, np.uint64)
    per_value = max(1, width // 8)
    if data is None or size == 0:
        return np.zeros((size, per_value), np.uint64)
    flat = np.frombuffer(data, dtype, size * per_value, column.offset * width)
    made = flat.astype(np.uint64, copy=False).reshape(size, per_value)
    valid = validity(column)
    return made if valid is None else np.where(valid[:, None], made, np.uint64(0))


def as_list(column: pa.Array) -> pa.Array:
    """Return a map as the list of its entries; lists as they are."""
    kind = column.type
    if not pa.types.is_map(kind):
        return column
    return column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))


def list_lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return the number of elements of each list, 0 for NULL."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    counts: npt.NDArray[np.int64] = lengths.to_numpy(zero_copy_only=False)
    return counts


def canonical(column: pa.Array) -> pa.Array:
    """Return the column with one NaN and no negative zero, also inside lists and structs.

    >>> canonical(pa.array([-0.0, None])).to_pylist()
    [0.0, None]
    """
    kind = column.type
    if not _has_float(kind) or len(column) == 0:
        return column
    if pa.types.is_floating(kind):
        return _canonical_floats(column)
    mask = pc.is_null(column) if column.null_count else None
    if pa.types.is_struct(kind):
        children = [canonical(child) for child in column.flatten()]
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_fixed_size_list(kind):
        start, stop = column.offset * kind.list_size, (column.offset + len(column)) * kind.list_size
        elements = canonical(column.values[start:stop])
        return pa.FixedSizeListArray.from_arrays(elements, type=kind, mask=mask)
    entries = as_list(column)
    offsets = np.concatenate(([0], np.cumsum(list_lengths(entries))))
    elements = canonical(entries.flatten())
    if pa.types.is_map(kind):
        keys, items = elements.flatten()
        at = pa.array(offsets, pa.int32())
        return pa.MapArray.from_arrays(at, keys, items, type=kind, mask=mask)
    maker, width = (
        (pa.LargeListArray, pa.int64())
        if pa.types.is_large_list(kind)
        else (pa.ListArray, pa.int32())
    )
    return maker.from_arrays(pa.array(offsets, width), elements, type=kind, mask=mask)


def _canonical_floats(column: pa.Array) -> pa.Array:
    numbers = column.to_numpy(zero_copy_only=False)
    made = numbers + numbers.dtype.type(0.0)  # −0.0 + 0.0 is 0.0
    made[np.isnan(made)] = np.nan
    valid = validity(column)
    if valid is None:
        return pa.array(made, column.type)
    made[~valid] = 0.0
    return pa.array(made, column.type, mask=~valid)


def _has_float(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    return any(_has_float(kind.field(i).type) for i in range(kind.num_fields))
