"""Whole batches at once where all is well, record by record where it is not.

Every text format has two decoders. The *exact* one reads a record at a time in Python and
is the definition. The *fast* one decodes a whole batch with vectorised libraries, and is
right or refuses: if it is not sure that every record of the batch decodes, to the very
values of the exact one, it raises ``Unsure``. ``decode_batch`` then splits the batch, so
that only the neighbourhood of an odd record takes the slow way::

    n records ──fast──▶ columns
        └─ Unsure ──▶ ``PARTS`` parts ──fast──▶ …
                          └─ Unsure ──▶ … ≤ ``FEW`` records ──exact──▶ columns and faults

Cost: fast alone if all records are good; one bad record costs about one more fast pass and
``FEW`` exact decodings; a batch of nothing but bad ones two fast passes that fail early,
and n exact decodings.

Equality of the two: tests/connectors/format/test_csv_property.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.format.decoder import Decoded, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reclock.connectors.format.decoder import Field

    Fast = Callable[[pa.Array], tuple[pa.Array, ...]] | None
    Exact = Callable[[bytes], Sequence[Any]]

PARTS: Final = 16
FEW: Final = 128


class Unsure(Exception):
    """The fast way cannot promise what the exact way gives; it was not taken."""


def decode_batch(data: pa.Array, fields: Sequence[Field], fast: Fast, exact: Exact) -> Decoded:
    """Return the columns and faults of payloads, some of which may be NULL."""
    data = data.cast(pa.binary())
    if data.null_count == 0:
        return _joined(list(_pieces(data, fields, fast, exact)), fields)
    valid = np.asarray(data.is_valid())
    some = _joined(list(_pieces(data.drop_null(), fields, fast, exact)), fields)
    places = pa.array(np.cumsum(valid) - 1, mask=~valid)
    faults = None if some.faults is None else some.faults.take(places)
    return Decoded(tuple(column.take(places) for column in some.columns), faults)


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


def _pieces(
    payloads: pa.Array, fields: Sequence[Field], fast: Fast, exact: Exact
) -> Iterator[Decoded]:
    count = len(payloads)
    if fast is None or count <= FEW:
        yield decode_exactly(payloads, fields, exact)
        return
    try:
        columns = fast(payloads)
    except Unsure:
        size = max(-(-count // PARTS), FEW)
        for start in range(0, count, size):
            yield from _pieces(payloads.slice(start, size), fields, fast, exact)
    else:
        yield Decoded(columns, None)


def _joined(pieces: Sequence[Decoded], fields: Sequence[Field]) -> Decoded:
    if len(pieces) == 1:
        return pieces[0]
    columns = tuple(
        pa.concat_arrays([piece.columns[at] for piece in pieces]) for at in range(len(fields))
    )
    if all(piece.faults is None for piece in pieces):
        return Decoded(columns, None)
    faults = [
        pa.nulls(len(piece.columns[0]), pa.string()) if piece.faults is None else piece.faults
        for piece in pieces
    ]
    return Decoded(columns, pa.concat_arrays(faults))
