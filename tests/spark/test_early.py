"""Spark starts with the opening of a state whose ticks needed it, and is never left behind."""

from __future__ import annotations

import threading
from time import monotonic, sleep

import pytest

import reclock
from reclock.spark.early import MARK, EarlySpark


class SlowSpark:
    """Starts when it is let, and counts its users as ``Spark`` does."""

    def __init__(self):
        self.asked, self.ready = threading.Event(), threading.Event()
        self.users = 0
        self.failing = False

    @property
    def session(self):
        self.asked.set()
        assert self.ready.wait(60)
        if self.failing:
            message = "no Spark today"
            raise RuntimeError(message)
        self.users = 1
        return object()

    def close(self):
        self.users = 0


def eventually(condition):
    deadline = monotonic() + 60
    while not condition():
        assert monotonic() < deadline
        sleep(0.005)


@pytest.fixture
def spark():
    return SlowSpark()


def threads():
    return [t for t in threading.enumerate() if t.name == "reclock-early-spark"]


def test_only_a_state_that_needed_spark_starts_it(tmp_path, spark):
    early = EarlySpark(tmp_path, spark)
    early.begin()
    assert threads() == []
    early.needed()
    EarlySpark(tmp_path, spark).begin()
    assert spark.asked.wait(60)
    spark.ready.set()
    eventually(lambda: spark.users == 1 and not threads())


def test_who_closes_before_the_start_is_over_leaves_nothing_behind(tmp_path, spark):
    early = EarlySpark(tmp_path, spark)
    early.needed()
    early.begin()
    assert spark.asked.wait(60)
    early.close()
    spark.ready.set()
    eventually(lambda: not threads())
    assert spark.users == 0


def test_a_start_in_vain_is_the_last_until_a_tick_needs_it_again(tmp_path, spark):
    EarlySpark(tmp_path, spark).needed()
    soon = EarlySpark(tmp_path, spark)
    soon.begin()
    soon.close()  # before it could be known
    assert (tmp_path / MARK).exists()
    spark.ready.set()
    eventually(lambda: not threads())
    useful = EarlySpark(tmp_path, spark)
    useful.begin()
    eventually(lambda: not threads())
    useful.needed()
    useful.close()
    assert (tmp_path / MARK).exists()
    vain = EarlySpark(tmp_path, spark)
    vain.begin()
    eventually(lambda: not threads())
    vain.close()
    assert not (tmp_path / MARK).exists()


def test_a_start_that_fails_is_left_to_those_who_need_it(tmp_path, spark):
    spark.failing = True
    spark.ready.set()
    early = EarlySpark(tmp_path, spark)
    early.needed()
    early.begin()
    eventually(lambda: not threads())
    assert spark.asked.is_set()


def test_a_state_that_cannot_be_marked_is_only_slower(tmp_path, spark):
    EarlySpark(tmp_path / "missing", spark).needed()
    EarlySpark(tmp_path / "missing", spark).begin()
    assert threads() == []


@pytest.mark.spark
def test_a_tick_that_needs_spark_leaves_the_mark(tmp_path):
    with reclock.open(tmp_path, background=False) as db:
        db.execute("CREATE TABLE t (a INT)")
        db.execute("INSERT INTO t VALUES (4)")
        db.tick()
        assert not (tmp_path / MARK).exists()
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT sqrt(a) AS b FROM t")
        db.execute("INSERT INTO t VALUES (9)")
        assert sorted(db.execute("SELECT b FROM v").rows) == [(2.0,), (3.0,)]
        assert (tmp_path / MARK).exists()
