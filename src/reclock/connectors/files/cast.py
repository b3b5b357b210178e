"""Columns of one Arrow type as another, strictly: a value that would change is a fault.

Definition. A value is cast as Arrow's safe cast does, which refuses overflow, lost digits, lost
fractions and texts that are not the value. A refused value is NULL, and its fault says why; the
others are not concerned. ``None`` if there is no cast between the types at all; the caller decides.

Cost: one cast if all is well; else halves are tried, so that k bad values of n take
O(k log n) casts. Tests: tests/connectors/files/test_cast.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cast(NamedTuple):
    """The values, and the faults by their places."""

    values: pa.Array
    faults: dict[int, str]


def cast(values: pa.Array, kind: pa.DataType) -> Cast | None:
    """Return ``values`` as ``kind``; None if there is no cast between the types.

    >>> cast(pa.array(["7", "x"]), pa.int64()).faults
    {1: "'x' is not a valid int64"}
    """
    if values.type == kind:
        return Cast(values, {})
    try:
        pieces = list(_pieces(values, kind, 0))
    except pa.ArrowNotImplementedError:
        return None
    faults = {at: fault for _, at, fault in pieces if fault is not None}
    made = [piece for piece, _, _ in pieces] or [pa.nulls(0, kind)]
    return Cast(pa.concat_arrays(made), faults)


def _pieces(
    values: pa.Array, kind: pa.DataType, at: int
) -> Iterator[tuple[pa.Array, int, str | None]]:
    try:
        yield pc.cast(values, kind, safe=True), at, None
    except pa.ArrowNotImplementedError:
        raise
    except pa.ArrowInvalid:
        if len(values) == 1:
            shown = repr(values[0].as_py())
            shown = shown if len(shown) <= 60 else shown[:59] + "…"
            yield pa.nulls(1, kind), at, f"{shown} is not a valid {kind}"
            return
        half = len(values) // 2
        yield from _pieces(values[:half], kind, at)
        yield from _pieces(values[half:], kind, at + half)
