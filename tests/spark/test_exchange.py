"""Plans that are executed again see the table of this time, whatever is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from reclock.spark.exchange import Exchange, is_repeatable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

QUERIES = {
    "projection": ("SELECT x + 1 AS y FROM {rows}", True),
    "group": ("SELECT max(x) + 1 AS y FROM {rows} GROUP BY x % 1", True),
    "window": ("SELECT x + row_number() OVER (ORDER BY x) AS y FROM {rows}", True),
    "shuffle": ("SELECT /*+ REPARTITION(2, x) */ x + 1 AS y FROM {rows}", False),
    "subquery": ("SELECT (SELECT max(x) FROM {rows}) + 1 AS y", False),
    "broadcast": (
        "SELECT /*+ BROADCAST(b) */ b.x + 1 AS y FROM range(1) a JOIN {rows} b ON a.id < b.x",
        False,
    ),
}


@pytest.fixture
def exchange(spark: Spark) -> Iterator[Exchange]:
    made = Exchange(spark.session)
    made.run("first", pa.table({"x": [0]}), lambda frame: frame)  # it has a way of its own
    yield made
    made.close()


@pytest.mark.parametrize(("text", "repeatable"), QUERIES.values(), ids=QUERIES)
def test_every_use_sees_its_own_table(exchange: Exchange, text: str, *, repeatable: bool) -> None:
    planned: list[DataFrame] = []

    def query(frame: DataFrame) -> DataFrame:
        planned.append(frame.sparkSession.sql(text, rows=frame))
        return planned[-1]

    for number in (1, 5, 3):
        table = pa.table({"x": pa.array([number], pa.int64())})
        assert exchange.run(text, table, query).column(0).to_pylist() == [number + 1]
    assert is_repeatable(planned[0]) == repeatable
    assert (len(planned) == 1) == repeatable
