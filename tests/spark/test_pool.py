"""Reads by Spark share the cores with ticks: neither comes before the other's last task."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from graphs.collections import arranged
from reclock.arrangement.store import LocalStore
from reclock.dataflow.types import arrow_types
from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted
from reclock.spark.peek import peek, stream, way
from reclock.spark.pool import Pool, title_of, titled
from reclock.spark.stoppable import stoppable
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.time.timestamp import Timestamp
from strategies.queries import FuzzCatalog

if TYPE_CHECKING:
    from pathlib import Path

    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

DEADLINE = 60.0


def pools(spark: Spark, since: int) -> set[str]:
    """Return the pools of the jobs that began after the first ``since`` ones."""
    store = spark.bulk.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    found = set()
    for at in range(jobs.size()):
        job = jobs.apply(at)
        if job.jobId() >= since:
            stages = job.stageIds()
            found |= {
                store.lastStageAttempt(stages.apply(n)).schedulingPool()
                for n in range(stages.size())
            }
    return found


def next_job(spark: Spark) -> int:
    """Return the number of the next job."""
    jobs = spark.bulk.sparkContext._jsc.sc().statusStore().jobsList(None)
    return max((jobs.apply(at).jobId() for at in range(jobs.size())), default=-1) + 1


def settled(spark: Spark) -> None:
    """Wait until what Spark says of its jobs is what happened."""
    spark.bulk.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def test_the_jobs_of_an_answer_are_in_a_pool_of_their_own(spark: Spark, tmp_path: Path) -> None:
    item = FuzzCatalog().resolve(("v",))
    types = arrow_types(item.schema)
    leaf = arranged(types, (0,), [(Counter({(1, 1): 1, (2, 2): 1}), 1)], LocalStore(tmp_path))
    plan = plan_query(parse_query("SELECT sqrt(d) FROM v WHERE k > 1"), FuzzCatalog())
    query = rewrite_query(plan, RewriteContext(outer_joins=True))
    for answer in (peek, stream):
        settled(spark)
        since = next_job(spark)
        found = answer(spark, query, {item.id: [leaf]}, Timestamp(1))
        if answer is stream:
            assert sum(batch.num_rows for batch in found.batches) == 1
        settled(spark)
        assert pools(spark, since) == {"queries"}
    since = next_job(spark)
    assert spark.session.range(3).count() == 3
    settled(spark)
    assert pools(spark, since) == {"default"}


def test_jobs_have_a_title_a_group_and_a_pool(spark: Spark) -> None:
    context = spark.session.sparkContext
    settled(spark)
    since = next_job(spark)
    with titled(context, title_of("tick", 1_700_000_001_000, ["sales"]), Pool.TICKS) as group:
        assert spark.session.range(3).count() == 3
    settled(spark)
    numbers = context.statusTracker().getJobIdsForGroup(group)
    assert numbers
    store = context._jsc.sc().statusStore()
    assert {store.job(n).description().get() for n in numbers} == {"tick 22:13:21 · sales"}
    assert pools(spark, since) == {"ticks"}
    assert context.getLocalProperty("spark.jobGroup.id") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT d FROM v WHERE k = 1", "look-up in v by (k): without a Spark job"),
        ("SELECT * FROM v", "scan of v, 2 updates: without a Spark job"),
        ("SELECT k FROM v WHERE d = 2", "scan of v, 2 updates: without a Spark job"),
        ("SELECT 7", "constants: without a Spark job"),
        ("SELECT sum(d) FROM v", "a Spark job in one task over 2 updates of v"),
    ],
)
def test_explain_says_whether_there_is_a_job(
    spark: Spark, tmp_path: Path, text: str, said: str
) -> None:
    item = FuzzCatalog().resolve(("v",))
    types = arrow_types(item.schema)
    leaf = arranged(types, (0,), [(Counter({(1, 1): 1, (2, 2): 1}), 1)], LocalStore(tmp_path))
    plan = plan_query(parse_query(text), FuzzCatalog())
    query = rewrite_query(plan, RewriteContext(outer_joins=True))
    assert way(query, {item.id: [leaf]}) == said
    settled(spark)
    since = next_job(spark)
    assert peek(spark, query, {item.id: [leaf]}, Timestamp(1)).num_rows
    settled(spark)
    assert (next_job(spark) == since) is ("without" in said)


def test_a_tick_does_not_wait_for_all_tasks_of_a_read(spark: Spark) -> None:
    """As a read of many tasks would have it that came first."""
    interrupt, ended = Interrupt(), []

    def read() -> None:
        context = spark.bulk.sparkContext
        try:
            with titled(context, "a read", Pool.QUERIES), stoppable(context, interrupt):
                spark.bulk.range(0, 10**11, 1, 50_000).selectExpr("sum(hash(id))").toArrow()
        except Interrupted as reason:
            ended.append(reason)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    tracker = spark.bulk.sparkContext.statusTracker()
    end = time.monotonic() + DEADLINE
    while not tracker.getActiveJobsIds():
        assert time.monotonic() < end, "the read has not begun"
        time.sleep(0.01)
    ticked = threading.Event()

    def tick() -> None:
        assert spark.session.range(10).count() == 10
        ticked.set()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        assert ticked.wait(DEADLINE), "the tick waits for the read"
        assert not ended
        assert reader.is_alive()
    finally:
        interrupt.set(Interrupted("enough"))
        reader.join(DEADLINE)
        ticker.join(DEADLINE)
    assert len(ended) == 1
