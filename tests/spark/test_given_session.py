"""A session of the user's stays as it is: its settings, its active session, its life."""

from __future__ import annotations

import pytest

import reclock
from reclock.errors import InvalidValue, SparkError
from reclock.spark.session import Spark

pytestmark = pytest.mark.spark


def test_nothing_of_a_given_session_changes(spark, tmp_path):
    from pyspark.sql import SparkSession  # noqa: PLC0415

    mine = spark.session.newSession()
    mine.conf.set("spark.sql.ansi.enabled", "false")
    mine.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    mine.sql("SELECT 1 AS x").createTempView("mine")
    mine.createDataFrame([(1,)], "x int")  # it is the active one from here on
    context = mine.sparkContext
    context.setJobDescription("mine")
    before = mine.conf.getAll, context.getConf().getAll(), set(context.getJobTags())
    with reclock.open(tmp_path, background=False, spark=mine) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute("CREATE TABLE t (k INT, x INT)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT k, sum(x + 1) AS s FROM t GROUP BY k")
        db.execute("INSERT INTO t VALUES (1, 2), (1, 3), (2, 4)")
        query = "SELECT a.k, upper('x' || b.s) FROM v a JOIN v b ON a.k < b.k"
        assert db.execute(query).rows == [(1, "X5")]
        assert db.dataframe("SELECT * FROM v").count() == 2
        assert SparkSession.getActiveSession() is mine
    assert (mine.conf.getAll, context.getConf().getAll(), set(context.getJobTags())) == before
    assert context.getLocalProperty("spark.job.description") == "mine"
    assert context.getLocalProperty("spark.scheduler.pool") is None
    assert [row.name for row in mine.catalog.listTables()] == ["mine"]
    context.setJobDescription(None)
    assert SparkSession.getActiveSession() is mine
    assert mine.table("mine").collect() == [(1,)]


def test_a_session_comes_without_master_and_settings(spark):
    for more in ({"master": "local[1]"}, {"conf": {"spark.a": "b"}}):
        with pytest.raises(InvalidValue, match="has a master and settings") as raised:
            Spark(given=spark.session, **more)
        assert raised.value.hint


class Client:
    """A session of Spark Connect has neither a context nor a session of Java."""


def test_spark_connect_is_refused_with_the_call_that_stands_in_the_way(tmp_path):
    for given in ({"master": "sc://localhost:15002"}, {"conf": {"spark.master": "sc://h"}},
                  {"spark": Client()}):  # fmt: skip
        with pytest.raises(SparkError, match="does not run on Spark Connect") as raised:
            reclock.open(tmp_path / "state", background=False, **given)
        assert raised.value.code == "0A000"
        assert "local property of the SparkContext" in raised.value.detail
        assert "spark://" in raised.value.hint
    assert not (tmp_path / "state").exists()
