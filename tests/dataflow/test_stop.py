"""Jobs that are asked to stop, stop; those of others go on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted
from reclock.spark.stoppable import stoppable

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

DEADLINE = 60.0
FOR_EVER = "SELECT sum(a.id * b.id) FROM range(0, 100000000, 1, 2) a, range(1000000) b"


def jobs(spark: Spark) -> list[int]:
    return list(spark.bulk.sparkContext.statusTracker().getActiveJobsIds())


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def run(spark: Spark, interrupt: Interrupt, query: str = FOR_EVER) -> None:
    with stoppable(spark.bulk.sparkContext, interrupt):
        spark.bulk.sql(query).toArrow()


class Running(threading.Thread):
    """Runs a query that does not end by itself; ``error`` is how it ended."""

    def __init__(self, spark: Spark) -> None:
        super().__init__(daemon=True)
        self._spark = spark
        self.interrupt = Interrupt()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            run(self._spark, self.interrupt)
        except Exception as error:
            self.error = error

    def __enter__(self) -> Running:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.interrupt.set(Interrupted("the test is over"))
        self.join(DEADLINE)


def test_a_job_is_cancelled_and_those_of_others_go_on(spark: Spark) -> None:
    assert spark.bulk.range(1).count() == 1
    reason = Interrupted("enough")
    with Running(spark) as other, Running(spark) as stopped:
        until(lambda: len(jobs(spark)) > 1)
        stopped.interrupt.set(reason)
        stopped.join(DEADLINE)
        assert stopped.error is reason
        until(lambda: bool(jobs(spark)))
        assert other.is_alive()
    assert isinstance(other.error, Interrupted)
    until(lambda: not jobs(spark))
    stopped.interrupt.clear()
    run(spark, stopped.interrupt, "SELECT 1")


def test_an_end_that_was_asked_for_before_lets_nothing_begin(spark: Spark) -> None:
    interrupt = Interrupt()
    interrupt.set(Interrupted("enough"))
    with pytest.raises(Interrupted):
        run(spark, interrupt)


def test_an_error_of_its_own_stays_one(spark: Spark) -> None:
    interrupt = Interrupt()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        run(spark, interrupt, "SELECT 1 / 0")
    assert not spark.bulk.sparkContext.getJobTags()
