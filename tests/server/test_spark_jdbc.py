"""Spark's own ``jdbc`` reader and writer, with PostgreSQL's driver, over tables of reclock."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from engines.model_engine import ModelEngine
from reclock.dev.jars import JDBC_VERSION, jdbc_jars
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.spark.session import Spark

pytestmark = pytest.mark.slow(seconds=10)  # Spark starts, and has a driver to load

MADE = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(12,2), ok BOOLEAN,
                at TIMESTAMPTZ, day DATE, d DOUBLE PRECISION);
CREATE TABLE made (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(12,2), at TIMESTAMPTZ);
CREATE MATERIALIZED VIEW sums AS SELECT name, count(*) AS n FROM t GROUP BY name
"""
AT = dt.datetime(2026, 11, 16, 12, 0, 0, 123_456, tzinfo=dt.UTC)
ROWS = [
    (n, None if n == 5 else f"name {n % 7}", Decimal(n) / 4, n % 2 == 0, AT, AT.date(), n / 8)
    for n in range(1_000)
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("served") / "state", ModelEngine())
    made.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    made.execute(MADE)
    made.insert("t", ROWS)
    with made:
        yield made


@pytest.fixture(scope="module")
def options(db: Database, spark: Spark) -> Iterator[Callable[..., dict[str, str]]]:
    """What both directions need, with more."""
    jar = jdbc_jars(print) / f"postgresql-{JDBC_VERSION}.jar"
    spark.session.sql(f"ADD JAR '{jar}'")
    with serving(db, Options(port=0, trusts_local=True, grace=1)) as server:

        def options(**more: object) -> dict[str, str]:
            return {
                "url": f"jdbc:postgresql://127.0.0.1:{server.port}/reclock",
                "user": "me",
                "driver": "org.postgresql.Driver",
                **{name: str(value) for name, value in more.items()},
            }

        yield options


def read(spark: Spark, options: dict[str, str]) -> Any:
    return spark.session.read.format("jdbc").options(**options).load()


def test_a_table_is_read(spark: Spark, options: Callable[..., dict[str, str]]) -> None:
    frame = read(spark, options(dbtable="t"))
    assert dict(frame.dtypes) == {
        "id": "bigint", "name": "string", "price": "decimal(12,2)", "ok": "boolean",
        "at": "timestamp", "day": "date", "d": "double",
    }  # fmt: skip
    found = frame.filter("id < 8").orderBy("id").collect()
    assert [tuple(row)[:4] for row in found] == [row[:4] for row in ROWS[:8]]
    assert (
        frame.selectExpr("sum(unix_micros(at))").first()[0]
        == 1_000 * int(AT.timestamp()) * 1_000_000 + 1_000 * 123_456
    )
    assert frame.groupBy().sum("price").first()[0] == sum(row[2] for row in ROWS)


def test_a_table_is_read_in_partitions(
    spark: Spark, options: Callable[..., dict[str, str]]
) -> None:
    asked = options(
        dbtable="t", partitionColumn="id", lowerBound=0, upperBound=1_000, numPartitions=4,
        fetchsize=100,
    )  # fmt: skip
    frame = read(spark, asked)
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(1_000))


def test_queries_and_filters_are_asked_of_the_database(
    spark: Spark, options: Callable[..., dict[str, str]]
) -> None:
    frame = read(spark, options(query="SELECT name, n FROM sums WHERE n > 100"))
    assert {row.name for row in frame.collect()} == {f"name {n}" for n in range(7)}
    pushed = read(spark, options(dbtable="t")).filter("name = 'name 3' AND price > 200")
    assert pushed.count() == sum(row[1] == "name 3" and row[2] > 200 for row in ROWS)


def test_rows_are_appended(
    db: Database, spark: Spark, options: Callable[..., dict[str, str]]
) -> None:
    frame = read(spark, options(dbtable="t")).select("id", "name", "price", "at")
    frame.write.format("jdbc").options(**options(dbtable="made", batchsize=100)).mode(
        "append"
    ).save()
    found = db.execute("SELECT id, name, price, at FROM made ORDER BY id").rows
    assert found == [(row[0], row[1], row[2], row[4]) for row in ROWS]
    again = frame.coalesce(1).filter("id IN (999)").selectExpr("id - 1000 AS id", "name")
    bad = again.unionAll(again)  # a key twice: all of the transaction is undone
    with pytest.raises(Py4JJavaError):  # in words that only a JVM with the driver can read
        bad.coalesce(1).write.format("jdbc").options(**options(dbtable="made")).mode(
            "append"
        ).save()
    assert db.execute("SELECT count(*) FROM made").rows == [(1_000,)]
