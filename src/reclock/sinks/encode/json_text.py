"""Columns as JSON texts: what FORMAT JSON writes for each type.

::

    boolean            true, false
    integers           12
    numeric(p,s)       12.50: a number with all s digits of its scale
    floats             the shortest number that reads back as the same; "NaN", "Infinity" and
                       "-Infinity" are strings, as JSON has no such numbers
    text               a string; what JSON must escape is escaped, nothing else
    bytea              a string: base64 with its padding
    date               "2026-01-31"
    timestamp          "2026-01-31T13:37:00.000000"
    timestamptz        "2026-01-31T13:37:00.000000Z"
    interval           "1 year 2 mons 3 days 04:05:06.7": PostgreSQL's text
    json               the value itself
    arrays, records    an array, an object
    NULL               null; so a json null reads back as NULL

Invariant: FORMAT JSON of a source reads back the very values (``connectors.format.json_exact``),
NULL for a json null. Cost: vectorised for every type but the interval; about 0.1 µs a value.

Tests: tests/sinks/encode/test_json_text.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.interval import Interval
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.sql.types import Type

    Convert = Callable[[pa.Array], pl.Series]

_MOMENT_WIDTH: Final = len("2026-01-31T13:37:00.000000")


def texts(column: pa.Array, kind: Type) -> pl.Series:
    """Return every value as JSON; no text is NULL.

    >>> texts(pa.array([1.5, None]), t.DOUBLE).to_list()
    ['1.5', 'null']
    """
    if column.null_count == len(column):
        return pl.Series(["null"]).new_from_index(0, len(column))
    made = _texts(column, kind)
    return made.fill_null("null") if made.null_count() else made


def joined(parts: Sequence[str | pl.Series]) -> pl.Series:
    """Return the texts of each row, one after another.

    >>> joined(["<", pl.Series(["a", "b"]), ">"]).to_list()
    ['<a>', '<b>']
    """
    frame = pl.DataFrame(
        [p.alias(f"c{i}") for i, p in enumerate(parts) if isinstance(p, pl.Series)]
    )
    pieces = [pl.lit(p) if isinstance(p, str) else pl.col(f"c{i}") for i, p in enumerate(parts)]
    return frame.select(text=pl.concat_str(pieces))["text"]


def record(names: Sequence[str], members: Sequence[pl.Series]) -> pl.Series:
    """Return objects with these members."""
    parts: list[str | pl.Series] = []
    opening = "{"
    for name, member in zip(names, members, strict=True):
        parts += [f"{opening}{json.dumps(name, ensure_ascii=False)}:", member]
        opening = ","
    return joined([*parts, "}"])


def _texts(column: pa.Array, kind: Type) -> pl.Series:
    """Return values as JSON; NULL for NULL, or the text null."""
    match kind:
        case t.Array():
            return _array(column, kind.element)
        case t.Record():
            return _record(column, kind)
        case t.Numeric():
            return _plain(column)
    bare = _BARE.get(kind)
    return bare(column) if bare else joined(['"', _QUOTED[kind](column), '"'])


def _series(column: pa.Array) -> pl.Series:
    return pl.Series(values=column)


def _plain(column: pa.Array) -> pl.Series:
    return _series(column).cast(pl.String)


def _float(column: pa.Array) -> pl.Series:
    numbers = _series(column)
    made = numbers.cast(pl.String)
    if column.type == pa.float32():
        # A source reads a real by its double: where that rounds to another, write the double.
        doubles = numbers.cast(pl.Float64)
        back = made.cast(pl.Float64).cast(pl.Float32)
        made = made.zip_with(back == numbers, doubles.cast(pl.String))
    if numbers.is_finite().all():
        return made
    strange = {"NaN": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
    return made.replace(strange)


def _escaped(column: pa.Array) -> pl.Series:
    strings = _series(column)
    if not _needs_escapes(column):
        return joined(['"', strings, '"'])
    encoded = strings.to_frame("x").select(text=pl.struct("x").struct.json_encode())["text"]
    return encoded.str.strip_prefix('{"x":').str.strip_suffix("}")


def _needs_escapes(column: pa.Array) -> bool:
    """Return whether some byte of the texts may not stand in a JSON string as it is."""
    _, offsets, data = column.buffers()
    if data is None:
        return False
    wide = np.int64 if pa.types.is_large_string(column.type) else np.int32
    first, last = np.frombuffer(offsets, wide)[[column.offset, column.offset + len(column)]]
    used = np.frombuffer(data, np.uint8)[first:last]
    return bool((used < 0x20).any() or (used == ord('"')).any() or (used == ord("\\")).any())


def _array(column: pa.Array, element: Type) -> pl.Series:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    inside = texts(column.flatten(), element).to_arrow(compat_level=pl.CompatLevel.oldest())
    lists = pa.ListArray.from_arrays(pa.array(offsets), inside.cast(pa.string()))
    made = joined(["[", _series(pc.binary_join(lists, ",")), "]"])
    return _masked(made, column)


def _record(column: pa.Array, kind: t.Record) -> pl.Series:
    members = [
        texts(member, inside)
        for member, (_, inside) in zip(column.flatten(), kind.fields, strict=True)
    ]
    return _masked(record([name for name, _ in kind.fields], members), column)


def _masked(made: pl.Series, column: pa.Array) -> pl.Series:
    """Return the texts, null where the column is NULL."""
    if column.null_count == 0:
        return made
    null = pl.Series(["null"]).new_from_index(0, len(column))
    return made.zip_with(_series(column.is_valid()), null)


def _bytea(column: pa.Array) -> pl.Series:
    return _series(column).bin.encode("base64")


def _date(column: pa.Array) -> pl.Series:
    return _series(column.cast(pa.string()))


def _timestamp(column: pa.Array) -> pl.Series:
    """Return moments with a T: Arrow writes a blank in its place, always in the same one."""
    local = column.cast(pa.timestamp("us"))
    written = pc.fill_null(local.cast(pa.string()), " " * _MOMENT_WIDTH)
    _, offsets, data = written.buffers()
    characters = np.frombuffer(data, np.uint8).copy()
    if len(characters) != len(column) * _MOMENT_WIDTH:
        return _series(local).dt.to_string("iso:strict")
    characters[len("2026-01-31") :: _MOMENT_WIDTH] = ord("T")
    moments = pa.StringArray.from_buffers(len(column), offsets, pa.py_buffer(characters))
    series = _series(moments)
    return series if column.null_count == 0 else series.zip_with(_series(column.is_valid()), _null)


_null: Final = pl.Series([None], dtype=pl.String)


def _timestamptz(column: pa.Array) -> pl.Series:
    return joined([_timestamp(column), "Z"])


def _interval(column: pa.Array) -> pl.Series:
    texts = (
        None if v is None else str(Interval(v["months"], v["days"], v["micros"]))
        for v in column.to_pylist()
    )
    return pl.Series(texts, dtype=pl.String)


_BARE: Final[dict[Type, Convert]] = {
    **dict.fromkeys((*t.INTEGERS, t.BOOLEAN), _plain),
    **dict.fromkeys(t.FLOATS, _float),
    t.TEXT: _escaped,
    t.JSON: _series,
}
_QUOTED: Final[dict[Type, Convert]] = {
    t.BYTEA: _bytea,
    t.DATE: _date,
    t.TIMESTAMP: _timestamp,
    t.TIMESTAMPTZ: _timestamptz,
    t.INTERVAL: _interval,
}
"""Types whose text is a string that needs no escapes; NULL for NULL."""
