"""Rows of transactions in runs: what a task writes of them, and what a release takes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import (
    DEBEZIUM,
    TRANSACTIONS,
    envelope_columns,
    envelope_fields,
    input_types,
)
from reclock.dataflow.keying import Keying
from reclock.dataflow.transaction_runs import (
    LOOSE,
    SUMMARY,
    Chosen,
    LooseOrder,
    TransactionRuns,
    packed,
    unpacked,
)

ROW = (pa.int64(),)
ENTRY = Keying(input_types(DEBEZIUM, ROW), (5,))
RUNS = TransactionRuns(ROW, ENTRY)
assert [f.name for f in envelope_fields(DEBEZIUM, ROW)][5 - len(ROW)] == "partition"


def records(*rows):
    """Rows as (partition, offset, transaction, place): their value is the offset."""
    fields = envelope_fields(TRANSACTIONS, ROW)
    given = {
        "partition": [r[0] for r in rows], "order": [r[1] for r in rows],
        "transaction": [r[2] for r in rows], "total_order": [r[3] for r in rows],
        "collection_order": [r[3] for r in rows],
    }  # fmt: skip
    columns = [pa.array([r[1] for r in rows], pa.int64())]
    columns += [
        pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(rows), f.type)
        for f in fields
    ]
    return deltas.build(columns, np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64))


def test_a_summary_has_a_line_for_each_transaction_and_partition():
    _, summary = RUNS.staged(
        records(
            (0, 5, None, None), (0, 6, "a", 2), (1, 7, "b", 1), (0, 8, "a", 2), (1, 9, "a", 4),
            (0, 10, "a", 1), (1, 11, "a", None),
        )
    )  # fmt: skip
    lines = sorted(zip(*(c.to_pylist() for c in SUMMARY.columns(summary)), strict=True))
    assert [line[:7] + line[8:] for line in lines] == [
        (LOOSE, None, 0, 1, 1, 0, -1, -1, 5, 5),
        (0, "a", 0, 2, 0, 1, 2, 4, 6, 10),  # the second row at place 2 is a repetition
        (0, "a", 1, 2, 1, 4, 4, 4, 9, 11),
        (1, "b", 1, 1, 0, 1, 1, 1, 7, 7),
    ]


def test_a_release_takes_rows_with_times_and_ranks():
    staged, _ = RUNS.staged(
        records((0, 5, None, None), (0, 6, "a", 2), (0, 7, "b", 1), (0, 8, "a", 1), (0, 9, "c", 3))
    )
    chosen = Chosen(
        np.array([LOOSE, 0, 2]), np.array([7, 7, 9]), np.array([0, 10, 20]),
        {0: np.array([1])}, LooseOrder(5, 0, 1),
    )  # fmt: skip
    assert chosen.stored(ENTRY.layout).schema == staged.schema
    found = ENTRY.restore(chosen.records(staged, ENTRY.layout))
    said = envelope_columns(DEBEZIUM, ROW, found)
    made = zip(
        found.column(0).to_pylist(), said["partition"].to_pylist(), said["order"].to_pylist(),
        found.column(found.num_columns - 2).to_pylist(), strict=True,
    )  # fmt: skip
    assert sorted(made) == [(5, -1, 0, 7), (6, 0, 12, 7), (9, 0, 23, 9)]


def test_staged_rows_are_statements_again():
    rows = [(0, 5, None, None), (0, 6, "a", 2), (1, 7, "b", 1), (2, 8, "a", 1)]
    staged, _ = RUNS.staged(records(*rows))
    made = RUNS.restored(RUNS.keying.restore(staged), pa.array(["a", "b"]))
    said = envelope_columns(TRANSACTIONS, ROW, made)
    names = ("partition", "order", "transaction", "total_order")
    assert sorted(zip(*(said[n].to_pylist() for n in names), strict=True)) == rows


@given(st.sets(st.integers(-5, 400)) | st.sets(st.integers(-(2**50), 2**50)))
def test_places_are_packed(places):
    some = np.array(sorted(places), np.int64)
    first, last = (some[0], some[-1]) if len(some) else (0, -1)
    data = packed(some)
    assert unpacked(int(first), int(last), len(some), data).tolist() == some.tolist()
    if len(some) > 64 and last - first < 400:
        assert len(data) <= 51
