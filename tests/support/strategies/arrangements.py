"""Layouts and updates of arrangements, and how to read them back as the plain model has them.

Every storable Arrow type with few values, those that are easily taken for one another
among them: NaN and −0.0, NULL and empty, ``["a", "b"]`` and ``["ab"]``, NULL inside lists
and structs. Hashes of keys that are good, bad, and all the same.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
from hypothesis import strategies as st

from reclock.arrangement.layout import Layout
from reclock.change.value import canonical
from strategies.changes import LAST, diffs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Hash = str
"""How keys are hashed: ``good``, ``poor`` (three values), ``constant``."""


class Change(NamedTuple):
    """An update of an arrangement, in plain Python."""

    key: tuple[Any, ...]
    value: tuple[Any, ...]
    time: int
    diff: int


NAN: Final = float("nan")

_NAIVE: Final = datetime(2020, 1, 1, 12, 0, 0, 5)  # noqa: DTZ001 - SQL's timestamp without zone

TYPES: Final[list[tuple[pa.DataType, list[Any]]]] = [
    (pa.int64(), [0, 1, -5, 2**63 - 1, None]),
    (pa.float64(), [0.0, -0.0, NAN, 1.5, float("inf"), None]),
    (pa.string(), ["", "a", "a\0", "eight ch", "nine char", "é" * 100, None]),
    (pa.bool_(), [True, False, None]),
    (pa.int16(), [0, -1, None]),
    (pa.float32(), [0.0, -0.0, NAN, None]),
    (pa.decimal128(12, 2), [Decimal("1.00"), Decimal("-0.01"), Decimal("0.00"), None]),
    (pa.decimal256(40, 0), [Decimal(10**39), Decimal(0), None]),
    (pa.date32(), [date(2020, 1, 1), date(1970, 1, 1), None]),
    (pa.timestamp("us"), [_NAIVE, datetime(1970, 1, 1), None]),  # noqa: DTZ001 - as above
    (pa.duration("us"), [timedelta(0), timedelta(days=-1), None]),
    (
        pa.month_day_nano_interval(),
        [pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0]), pa.MonthDayNano([0, 0, 1]), None],
    ),
    (pa.binary(), [b"", b"\0", b"\0\0", b"x" * 200, None]),
    (pa.binary(3), [b"abc", b"ab\0", None]),
    (pa.large_string(), ["", "large", None]),
    (pa.null(), [None]),
    (pa.list_(pa.float64()), [[], [0.0], [-0.0], [NAN], [None], [1.0, 2.0], None]),
    (pa.list_(pa.string()), [[], ["a", "b"], ["ab"], ["", ""], [""], [None], None]),
    (pa.large_list(pa.list_(pa.int32())), [[], [[]], [[1], [2]], [[1, 2]], [None], None]),
    (pa.list_(pa.float32(), 2), [[0.0, 1.0], [-0.0, 1.0], [None, NAN], None]),
    (
        pa.struct([("a", pa.float64()), ("b", pa.string())]),
        [{"a": -0.0, "b": "x"}, {"a": 0.0, "b": "x"}, {"a": None, "b": None}, None],
    ),
    (pa.list_(pa.struct([("a", pa.int8())])), [[{"a": 1}], [{"a": None}], [None], [], None]),
    (pa.map_(pa.string(), pa.float64()), [[("a", -0.0)], [("a", 0.0)], [("a", None)], [], None]),
]  # fmt: skip
"""Every storable kind of type, with values that are hard to keep apart or together."""

_POOLS: Final = {str(kind): values for kind, values in TYPES}

kinds = st.sampled_from([kind for kind, _ in TYPES])

hashes = st.sampled_from(["good", "poor", "constant"])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw up to two key and two value columns, some with names that mean something else."""
    names = st.sampled_from(["id", "time", "kh", "diff"])
    fields = st.builds(pa.field, names, kinds)
    key = draw(st.lists(fields, max_size=2))
    value = draw(st.lists(fields, max_size=2))
    return Layout(tuple(key), tuple(value))


def rows_of(fields: Iterable[pa.Field]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw one value per field, from few."""
    return st.tuples(*(st.sampled_from(_POOLS[str(field.type)]) for field in fields))


def changes_of(
    layout: Layout, lower: int = 0, upper: int = LAST + 1, max_size: int = 30
) -> st.SearchStrategy[list[Change]]:
    """Draw updates with times in ``[lower, upper)``, in no order, many of which cancel."""
    change = st.builds(
        Change,
        rows_of(layout.key),
        rows_of(layout.value),
        st.integers(lower, upper - 1),
        diffs,
    )
    return st.lists(change, max_size=max_size)


def hash_key(how: Hash, key: tuple[Any, ...]) -> int:
    """Return a hash of a key, equal for equal keys: SQL's equality."""
    if how == "constant":
        return 7
    code = crc32(repr(canonical(key)).encode())
    return code % 3 if how == "poor" else (code << 31) - (1 << 62)


def table_of(layout: Layout, changes: list[Change], how: Hash = "good") -> pa.Table:
    """Return the updates as an Arrow table in the order of the layout."""
    columns = [
        [hash_key(how, change.key) for change in changes],
        *([change.key[i] for change in changes] for i in range(len(layout.key))),
        *([change.value[i] for change in changes] for i in range(len(layout.value))),
        [change.time for change in changes],
        [change.diff for change in changes],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, layout.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=layout.schema)


def keys_of(layout: Layout, keys: list[tuple[Any, ...]], how: Hash = "good") -> pa.Table:
    """Return keys to look up as an Arrow table."""
    rows = [(hash_key(how, key), *key) for key in keys]
    arrays = [
        pa.array([row[i] for row in rows], field.type) for i, field in enumerate(layout.key_schema)
    ]
    return pa.Table.from_arrays(arrays, schema=layout.key_schema)


def changes_in(layout: Layout, batches: Iterable[pa.RecordBatch]) -> list[Change]:
    """Return the updates of batches in plain Python, in their order."""
    split = 1 + len(layout.key)
    return [
        Change(tuple(row[1:split]), tuple(row[split:-2]), row[-2], row[-1])
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def model(
    changes: Iterable[Change], retime: Callable[[int], int | None] = lambda time: time
) -> Counter[tuple[Any, ...]]:
    """Return the plain model: multiplicity by (key, value, time), without zeros."""
    total: Counter[tuple[Any, ...]] = Counter()
    for key, value, time, diff in changes:
        at = retime(time)
        if at is not None:
            total[canonical(key), canonical(value), at] += diff
    return Counter({update: count for update, count in total.items() if count})
