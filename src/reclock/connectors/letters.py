"""Dead letters: records that do not decode, with what they were made of.

Definition. With ``on_error = 'skip'`` a record that has a fault is no input of the envelope. It is
a *letter*: where it was, its key and its value as they were read, and why it does not decode::

    part text, offset int64, key binary, value binary, code text, reason text

``with_payload`` adds key and value to what was decoded, in whichever process that is done, for
those records alone that have a fault. ``parted`` takes them out, before anything is staged, so
that the rest is as if they had not been there: the record of a key that does not decode hides no
earlier one.

A value that is longer than ``MOST_BYTES`` is cut there. Records of Parquet files have no bytes of
their own; their letters have the place and the reason.

The message of an error row begins with the place of its record (``records.Faults``);
``place_of`` reads it from there, so errors that a source already has can become letters.

Cost: nothing where nothing is wrong. Keeps P9. Tests: tests/connectors/test_letters.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    _Column: TypeAlias = pa.Array | pa.ChunkedArray

MOST_BYTES: Final = 1 << 20
"""How much of a key or a value a letter has."""

PAYLOAD: Final = (pa.field("key", pa.binary()), pa.field("value", pa.binary()))

SCHEMA: Final = pa.schema(
    [
        ("part", pa.string()),
        ("offset", pa.int64()),
        *PAYLOAD,
        ("code", pa.string()),
        ("reason", pa.string()),
    ]
)


class Place(NamedTuple):
    """Where a record is, and what is said of it."""

    part: str
    offset: int
    reason: str


def with_payload(made: pa.RecordBatch, raw: pa.RecordBatch) -> pa.RecordBatch:
    """Return decoded records, one for each raw one, with key and value of those with a fault."""
    faulty = made.column(made.num_columns - 2).is_valid()
    columns = [*made.columns, *(_of(raw, field, faulty) for field in PAYLOAD)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


def _of(raw: pa.RecordBatch, field: pa.Field, faulty: pa.Array) -> pa.Array:
    if not faulty.true_count or field.name not in raw.schema.names:
        return pa.nulls(raw.num_rows, field.type)
    whole = raw.column(field.name).cast(field.type)
    some = pc.if_else(faulty, whole, pa.scalar(None, field.type))
    return pc.binary_slice(some, 0, MOST_BYTES)


def parted(
    batches: Sequence[pa.RecordBatch], whose: str
) -> tuple[tuple[pa.RecordBatch, ...], tuple[pa.RecordBatch, ...]]:
    """Return records without their payloads and without those that have a fault, and the letters.

    ``whose`` is what the messages of faults begin with.
    """
    rows, letters = [], []
    for batch in batches:
        width = batch.num_columns - len(PAYLOAD)
        faulty = batch.column(width - 2).is_valid()
        kept = batch.select(range(width))
        if faulty.true_count:
            letters.append(_letters(batch.filter(faulty), whose))
            kept = kept.filter(pc.invert(faulty))
        rows.append(kept)
    return tuple(rows), tuple(letters)


def _letters(faulty: pa.RecordBatch, whose: str) -> pa.RecordBatch:
    parts, offsets = faulty.column(0).cast(pa.string()), faulty.column(1)
    *_, code, message, key, value = faulty.columns
    reasons = [
        text.removeprefix(placed(whose, part, offset))
        for text, part, offset in zip(
            message.to_pylist(), parts.to_pylist(), offsets.to_pylist(), strict=True
        )
    ]
    columns = [parts, offsets, key, value, code, pa.array(reasons, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def last_of(batches: Sequence[pa.RecordBatch], most: int, most_bytes: int) -> pa.RecordBatch:
    """Return the last letters, by part and offset: as many as may stay."""
    whole = pa.concat_batches(batches).sort_by([("part", "ascending"), ("offset", "ascending")])
    return whole.slice(first_kept(whole.column("key"), whole.column("value"), most, most_bytes))


def first_kept(key: _Column, value: _Column, most: int, most_bytes: int) -> int:
    """Return which of some letters is the first that may stay: the last one always does."""
    sizes = lengths(key, value)
    behind = np.cumsum(sizes[::-1])[::-1]  # of it and all after it
    fits = (behind <= most_bytes) & (np.arange(len(sizes)) >= len(sizes) - most)
    fits[-1] = True
    return int(np.flatnonzero(fits)[0])


def lengths(key: _Column, value: _Column) -> NDArray[np.int64]:
    """Return how long the key and the value of each letter are together."""
    made = np.zeros(len(key), np.int64)
    for column in (key, value):
        made += pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
    return made


def placed(whose: str, part: object, offset: object) -> str:
    """Return how the message of a fault begins.

    >>> placed('source "s", partition', 3, 7)
    'source "s", partition 3, offset 7: '
    """
    return f"{whose} {part}, offset {offset}: "


def place_of(message: str, whose: str) -> Place | None:
    """Return the place that the message of a fault begins with; None if it has none.

    >>> place_of('source "s", partition 3, offset 7: no value', 'source "s", partition')
    Place(part='3', offset=7, reason='no value')
    """
    rest = message.removeprefix(f"{whose} ")
    found = re.match(r"(?s)(.*?), offset (\d+): (.*)", rest)
    if rest == message or found is None:
        return None
    return Place(found[1], int(found[2]), found[3])
