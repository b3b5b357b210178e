"""Statements whose Spark jobs are stopped: by a cancel request, by a timeout, by a dead client."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import reclock
from reclock.server.background import serving
from reclock.server.server import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reclock.dataflow.session import Spark

pytestmark = pytest.mark.spark

DEADLINE = 90.0
FOR_EVER = (
    "SELECT count(*) FROM generate_series(1, 1000000) AS a(x), generate_series(1, 1000000) AS b(y)"
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


def test_jobs_end_with_their_statements(spark: Spark, where: dict[str, Any]) -> None:
    failed: dict[str, BaseException] = {}

    def run(name: str, connection: psycopg.Connection) -> None:
        try:
            connection.execute(FOR_EVER)
        except psycopg.Error as error:
            failed[name] = error

    with psycopg.connect(**where) as one, psycopg.connect(**where) as other:
        first = threading.Thread(target=run, args=("one", one), daemon=True)
        first.start()
        until(lambda: bool(jobs(spark)))
        mine = jobs(spark)
        second = threading.Thread(target=run, args=("other", other), daemon=True)
        second.start()
        until(lambda: bool(jobs(spark) - mine))
        one.cancel_safe()
        first.join(DEADLINE)
        assert isinstance(failed["one"], psycopg.errors.QueryCanceled)
        until(lambda: not jobs(spark) & mine)
        assert jobs(spark), "the job of another was cancelled too"
        assert one.execute("SELECT 1").fetchone() == (1,)
        other.pgconn.finish()
        second.join(DEADLINE)
    until(lambda: not jobs(spark))
    with psycopg.connect(**where) as one:
        one.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            one.execute(FOR_EVER)
    until(lambda: not jobs(spark))
