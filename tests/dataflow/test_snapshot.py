"""The last record of every key, of all records or of parts of them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.snapshot import LastOfEach

LAST = LastOfEach((1, 2), 3)
SCHEMA = pa.schema([("o", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("n", pa.int64())])


def batch(rows):
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)],
                           schema=SCHEMA)  # fmt: skip


keys = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["x", None]))


@given(st.lists(st.lists(keys, max_size=6), max_size=4))
def test_the_last_of_parts_are_the_last_of_all(parts):
    number = iter(range(100))
    batches = [batch([(n := next(number), a, b, n) for a, b in part]) for part in parts]
    batches = [b for b in batches if b.num_rows]
    every = [row for b in batches for row in map(tuple, (r.values() for r in b.to_pylist()))]
    last = {(a, b): row for row in every for _, a, b, _ in [row] if None not in (a, b)}
    keyless = [row for row in every if None in row[1:3]]
    expected = sorted([*last.values(), *keyless], key=repr)
    assert sorted(rows(LAST(batches)), key=repr) == expected
    by_part = [some for b in batches for some in LAST([b])]
    assert sorted(rows(LAST(by_part)), key=repr) == expected


def rows(batches):
    return [tuple(row.values()) for b in batches for row in b.to_pylist()]


def test_nothing_has_no_last():
    assert LAST(()) == ()
