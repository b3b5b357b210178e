"""Answers in batches: all rows, in order, few at a time."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reclock.coordinator.answer import BATCH_ROWS, Answer
from reclock.sql.schema import Column, Schema
from reclock.sql.types import TEXT
from reclock.time.timestamp import Timestamp


def answer(values: list[str]) -> Answer:
    table = pa.table({"a": pa.array(values, pa.string())})
    return Answer(Schema((Column("a", TEXT),)), table, Timestamp(1))


@given(st.lists(st.text(max_size=3), max_size=20))
def test_nothing_is_lost(values: list[str]) -> None:
    assert [v for b in answer(values).batches() for v in b.column(0).to_pylist()] == values


def test_batches_are_small() -> None:
    assert max(b.num_rows for b in answer(["x"] * 10_000).batches()) == BATCH_ROWS
    large = answer(["x" * 1_000_000] * 12)
    assert max(b.num_rows for b in large.batches()) <= 4
