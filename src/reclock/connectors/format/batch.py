"""Whole batches at once where all is well, record by record where it is not.

Every text format has two kinds of decoders. The *exact* one reads a record at a time in
Python and is the definition. *Fast* ones decode whole batches with vectorised libraries;
each says of which records it is ``Sure``, to the very values of the exact one, or raises
``Unsure``. ``decode_batch`` tries them in their order on what is left, then splits the
batch, so that only the neighbourhood of an odd record takes the slow way::

    n records ──fast──▶ columns of the records it is sure of
        └─ the others ──next fast──▶ …
               └─ Unsure ──▶ ``PARTS`` parts, each from the start
                                └─ ≤ ``FEW`` records ──exact──▶ columns and faults

Cost: one fast pass if all records are good. A bad record that a fast way can single out
costs one exact decoding, any other about one more fast pass and ``FEW`` exact decodings. A
batch of nothing but bad ones costs three fast passes that fail early, and n exact decodings.

Equality: tests/connectors/format/test_json_property.py and test_csv_property.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.connectors.format.decoder import Decoded, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reclock.connectors.format.decoder import Field

    Fast = Callable[[pa.Array], "Sure"]
    Exact = Callable[[bytes], Sequence[Any]]

PARTS: Final = 16
FEW: Final = 128


class Unsure(Exception):
    """The fast way cannot promise what the exact way gives; it was not taken."""


class Sure(NamedTuple):
    """Columns of the records in ``rows``; None if that is all of them."""

    columns: tuple[pa.Array, ...]
    rows: NDArray[np.bool_] | None = None


def decode_batch(
    data: pa.Array, fields: Sequence[Field], ways: Sequence[Fast], exact: Exact
) -> Decoded:
    """Return the columns and faults of payloads, some of which may be NULL."""
    data = data.cast(pa.binary())
    if data.null_count == 0:
        return _decode(data, fields, ways, exact, ways)
    valid = np.asarray(data.is_valid())
    some = _decode(data.drop_null(), fields, ways, exact, ways)
    return _taken(some, pa.array(np.cumsum(valid) - 1, mask=~valid))


def decode_exactly(payloads: pa.Array, fields: Sequence[Field], exact: Exact) -> Decoded:
    """Decode payloads, none of them NULL, one by one."""
    rows: list[Sequence[Any]] = []
    faults: list[str | None] = []
    nothing = (None,) * len(fields)
    for payload in payloads.to_pylist():
        try:
            rows.append(exact(payload))
            faults.append(None)
        except Fault as fault:
            rows.append(nothing)
            faults.append(str(fault))
    values = list(zip(*rows, strict=True)) or [()] * len(fields)
    columns = tuple(pa.array(v, f.arrow) for v, f in zip(values, fields, strict=True))
    failed = any(fault is not None for fault in faults)
    return Decoded(columns, pa.array(faults, pa.string()) if failed else None)


def _decode(
    payloads: pa.Array,
    fields: Sequence[Field],
    ways: Sequence[Fast],
    exact: Exact,
    left: Sequence[Fast],
) -> Decoded:
    """Decode payloads, none of them NULL; ``left`` are the ways that were not tried on them."""
    if not ways or len(payloads) <= FEW:
        return decode_exactly(payloads, fields, exact)
    while left:
        way, *left = left
        sure = _tried(way, payloads)
        if sure is None or (sure.rows is not None and not sure.rows.any()):
            left = [other for other in left if other is not way]
            continue
        if sure.rows is None:
            return Decoded(sure.columns, None)
        others = payloads.filter(pa.array(~sure.rows))
        rest = _decode(others, fields, ways, exact, left)
        return _taken(_joined([Decoded(sure.columns, None), rest]), _places(sure.rows))
    size = max(-(-len(payloads) // PARTS), FEW)
    starts = range(0, len(payloads), size)
    parts = [payloads.slice(start, size) for start in starts]
    return _joined([_decode(part, fields, ways, exact, ways) for part in parts])


def _tried(way: Fast, payloads: pa.Array) -> Sure | None:
    try:
        return way(payloads)
    except Unsure:
        return None


def _places(rows: NDArray[np.bool_]) -> pa.Array:
    """Return where each record is, if those in ``rows`` are put before the others."""
    ones = int(rows.sum())
    return pa.array(np.where(rows, np.cumsum(rows) - 1, ones + np.cumsum(~rows) - 1))


def _taken(decoded: Decoded, places: pa.Array) -> Decoded:
    faults = None if decoded.faults is None else decoded.faults.take(places)
    return Decoded(tuple(column.take(places) for column in decoded.columns), faults)


def _joined(pieces: Sequence[Decoded]) -> Decoded:
    columns = tuple(map(pa.concat_arrays, zip(*(p.columns for p in pieces), strict=True)))
    if all(piece.faults is None for piece in pieces):
        return Decoded(columns, None)
    faults = [
        pa.nulls(len(piece.columns[0]), pa.string()) if piece.faults is None else piece.faults
        for piece in pieces
    ]
    return Decoded(columns, pa.concat_arrays(faults))
