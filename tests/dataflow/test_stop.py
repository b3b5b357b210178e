"""Jobs that are asked to stop, stop; those of others go on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from reclock.coordinator.interrupt import Interrupt
from reclock.dataflow.stop import stoppable
from reclock.errors import Interrupted

if TYPE_CHECKING:
    from reclock.dataflow.session import Spark

pytestmark = pytest.mark.spark

DEADLINE = 60.0
FOR_EVER = "SELECT sum(a.id * b.id) FROM range(0, 100000000, 1, 2) a, range(1000000) b"


def jobs(spark: Spark) -> list[int]:
    return list(spark.bulk.sparkContext.statusTracker().getActiveJobsIds())


def until_running(spark: Spark) -> None:
    end = time.monotonic() + DEADLINE
    while not jobs(spark):
        assert time.monotonic() < end, "no job has begun"
        time.sleep(0.01)


def run(spark: Spark, interrupt: Interrupt, query: str = FOR_EVER) -> None:
    with stoppable(spark.bulk.sparkContext, interrupt):
        spark.bulk.sql(query).toArrow()


def test_a_job_is_cancelled_and_the_reason_is_what_is_raised(spark: Spark) -> None:
    interrupt = Interrupt()
    reason = Interrupted("enough")
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run(spark, interrupt)
        except Interrupted as error:
            failed.append(error)

    assert spark.bulk.range(1).count() == 1
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    until_running(spark)
    interrupt.set(reason)
    thread.join(DEADLINE)
    assert failed == [reason]
    end = time.monotonic() + DEADLINE
    while jobs(spark):
        assert time.monotonic() < end, "the job goes on"
        time.sleep(0.01)
    interrupt.clear()
    run(spark, interrupt, "SELECT 1")


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
