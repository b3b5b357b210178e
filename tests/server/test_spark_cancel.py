"""Statements whose Spark jobs are stopped: by a cancel request, by a timeout, by a dead client."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import reclock
from reclock.server.background import serving
from reclock.server.server import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

DEADLINE = 90.0
# Half a minute of one core. Spark ends the job at once, but not a task that computes without
# reading: two such tasks keep both cores, and the tests that follow wait for them.
FOR_EVER = (
    "SELECT count(*) FROM generate_series(1, 30000) AS a(x), generate_series(1, 3000) AS b(y)"
    " WHERE x * y % 7 = x"
)


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def where(tmp_path: Path, spark: Spark) -> Iterator[dict[str, Any]]:
    assert spark.session.range(1).count() == 1
    with (
        reclock.open(tmp_path / "state") as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
    ):
        yield {"host": "127.0.0.1", "port": server.port, "user": "me", "autocommit": True}


def jobs(spark: Spark) -> set[int]:
    return set(spark.session.sparkContext.statusTracker().getActiveJobsIds())


class Running(threading.Thread):
    """A connection that runs a statement; ``error`` is how it ended."""

    def __init__(self, where: dict[str, Any], statement: str = FOR_EVER) -> None:
        super().__init__(daemon=True)
        self._statement = statement
        self.connection = psycopg.connect(**where)
        self.error: psycopg.Error | None = None

    def run(self) -> None:
        try:
            self.connection.execute(self._statement)
        except psycopg.Error as error:
            self.error = error

    def __enter__(self) -> Running:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        end = time.monotonic() + DEADLINE
        while self.is_alive() and time.monotonic() < end:
            with suppress(psycopg.Error):
                self.connection.cancel_safe()
            self.join(0.5)
        if not self.is_alive():
            self.connection.close()


@pytest.mark.slow(seconds=30)
def test_deep_expressions_are_planned_in_time_and_their_jobs_end(
    spark: Spark, where: dict[str, Any]
) -> None:
    deep = "abs(" * 120 + "n" + ")" * 120
    with psycopg.connect(**where) as one:
        one.execute("CREATE TABLE t (n BIGINT)")
        one.execute("INSERT INTO t SELECT x FROM generate_series(1, 100000) AS a(x)")
        one.execute("SET statement_timeout = '300s'")
        found = one.execute(f"SELECT sum(x) FROM (SELECT {deep} AS x FROM t) AS s").fetchone()
        assert found == (5_000_050_000,)
        sums = "+".join(["n"] * 380)
        assert one.execute(f"SELECT max({sums}) FROM t").fetchone() == (38_000_000,)
    statement = f"SELECT count(*) FROM t a, t b WHERE {deep.replace('n', 'a.n')} = b.n % 7"
    with Running(where, statement) as cancelled:
        until(lambda: bool(jobs(spark)))
        cancelled.connection.cancel_safe()
        cancelled.join(DEADLINE)
        assert isinstance(cancelled.error, psycopg.errors.QueryCanceled)
        until(lambda: not jobs(spark))


def test_jobs_end_with_their_statements(spark: Spark, where: dict[str, Any]) -> None:
    with Running(where) as cancelled:
        until(lambda: bool(jobs(spark)))
        cancelled.connection.cancel_safe()
        cancelled.join(DEADLINE)
        assert isinstance(cancelled.error, psycopg.errors.QueryCanceled)
        until(lambda: not jobs(spark))
        assert cancelled.connection.execute("SELECT 1").fetchone() == (1,)
    with Running(where) as killed:
        until(lambda: bool(jobs(spark)))
        with socket.socket(fileno=os.dup(killed.connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
        killed.join(DEADLINE)
        until(lambda: not jobs(spark))
    with psycopg.connect(**where) as slow:
        slow.execute("CREATE TABLE t (n BIGINT)")
        slow.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            slow.execute(f"INSERT INTO t {FOR_EVER}")  # a write gives way to others, too
        until(lambda: not jobs(spark))
        slow.execute("SET statement_timeout = 0")
        slow.execute("INSERT INTO t VALUES (1)")
        assert slow.execute("SELECT n FROM t").fetchall() == [(1,)]
