"""Rows of a frame, a batch at a time: all of them, in order, and no file is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.engine.interrupt import Interrupt
from reclock.errors import ExpressionFailed, Interrupted
from reclock.spark.spill import fetched, spilled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

ROWS = 10_000
ORDERED = f"SELECT id AS a, 'x' || id AS b FROM range(0, {ROWS}, 1, 4) ORDER BY id DESC"


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_rows_come_in_their_order_and_files_go(spark: Spark, tmp_path: Path) -> None:
    found = spilled(spark.bulk.sql(ORDERED), "q", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert numbers(found) == list(range(ROWS))[::-1]
    assert list(tmp_path.iterdir()) == []
    assert numbers(fetched(spark.bulk.sql(ORDERED), "q")) == list(range(ROWS))[::-1]


def test_no_rows(spark: Spark, tmp_path: Path) -> None:
    nothing = spark.bulk.sql("SELECT id FROM range(10) WHERE id < 0")
    assert numbers(spilled(nothing, "q", tmp_path)) == numbers(fetched(nothing, "q")) == []
    assert list(tmp_path.iterdir()) == []


def test_who_wants_no_more_leaves_no_files(spark: Spark, tmp_path: Path) -> None:
    for taken in range(2):
        found = spilled(spark.bulk.sql(ORDERED), "q", tmp_path)
        for _ in range(taken):
            assert next(found).num_rows
        assert list(tmp_path.iterdir()) != []
        found.close()
        assert list(tmp_path.iterdir()) == []


def test_errors_are_those_of_the_query_and_leave_no_files(spark: Spark, tmp_path: Path) -> None:
    wrong = spark.bulk.sql("SELECT 1 / (id - 50) FROM range(100)")
    with pytest.raises(ExpressionFailed, match="division by zero"):
        spilled(wrong, "q", tmp_path)
    with pytest.raises(ExpressionFailed, match="division by zero"):
        numbers(fetched(wrong, "q"))
    stopped = Interrupt()
    stopped.set(Interrupted("enough"))
    with pytest.raises(Interrupted):
        spilled(wrong, "q", tmp_path, stopped)
    assert list(tmp_path.iterdir()) == []
