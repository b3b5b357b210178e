"""A statement that is cancelled, or left by Ctrl-C, while Spark works for it ends at once.

Its job ends, jobs of others go on, and nothing of it is left. Tasks here do nothing for a minute.
"""

from __future__ import annotations

import os
import signal
import threading
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

import reclock
from reclock import ManualClock
from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted
from reclock.spark import chain, frame
from reclock.spark.stoppable import stoppable
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reclock.session.database import Database
    from reclock.spark.session import Spark

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=5)]

SOON = 15.0
"""A moment where the machine has nothing else to do; tasks take much longer."""
DEADLINE = 60.0
QUERY = "SELECT k, stddev(x) AS d FROM t GROUP BY k"
STATEMENTS = {
    "first load": f"CREATE MATERIALIZED VIEW v WITH (allow_full_recompute = true) AS {QUERY}",
    "query": QUERY,
}
REASON = Interrupted("canceling statement due to user request")


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = monotonic() + DEADLINE
    while not condition():
        assert monotonic() < end, "it did not happen"
        sleep(0.01)


@pytest.fixture
def db(tmp_path: Path, spark: Spark) -> Iterator[Database]:
    assert spark.session.range(1).count() == 1
    with reclock.open(tmp_path / "state", clock=ManualClock(1_000), background=False) as db:
        db.execute("CREATE TABLE t (k INT, x INT)")
        db.execute("INSERT INTO t SELECT i % 3, i FROM generate_series(1, 30) AS g (i)")
        db.tick()
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        yield db


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """What a task does that does nothing for a minute, or until the test is over."""
    over = str(tmp_path / "over")

    def idle() -> None:
        end = monotonic() + DEADLINE
        while monotonic() < end and not os.path.exists(over):
            sleep(0.05)

    yield idle
    (tmp_path / "over").touch()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, idle: Callable[[], None]) -> Iterator[None]:
    """Tasks of first loads and of queries do nothing for long."""

    class Stage(chain._Stage):
        def __call__(self, batches):
            idle()
            yield from super().__call__(batches)

    class Part(frame.ReadPart):
        def __call__(self, numbers):
            idle()
            yield from super().__call__(numbers)

    with monkeypatch.context() as patch:
        patch.setattr(chain, "_Stage", Stage)
        patch.setattr(frame, "ReadPart", Part)
        patch.setattr(frame, "LOCAL_ROWS", 0)
        yield


def running(spark: Spark, kind: str) -> bool:
    """Whether a task of a job of some kind runs."""
    store = spark.session.sparkContext._jsc.sc().statusStore()
    tracker = spark.session.sparkContext.statusTracker()
    for number in tracker.getActiveJobsIds():
        found = store.job(number)
        if found.description().isDefined() and found.description().get().startswith(kind):
            return found.numActiveTasks() > 0
    return False


@pytest.fixture
def other(spark: Spark, idle: Callable[[], None]) -> Iterator[None]:
    """A job of somebody else's, which goes on."""
    interrupt, ended = Interrupt(), []

    def nothing(batches):
        for _ in range(5):
            idle()
        yield from batches

    def run() -> None:
        context = spark.bulk.sparkContext
        try:
            with stoppable(context, interrupt):
                context.setLocalProperty("spark.job.description", "other")
                spark.bulk.range(0, 1, 1, 1).mapInArrow(nothing, "id bigint").toArrow()
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: running(spark, "other"))
    try:
        yield
        assert not ended
        assert running(spark, "other")
    finally:
        interrupt.set(REASON)
        thread.join(DEADLINE)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT is Ctrl-C; a runner of tests may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ended(db: Database, spark: Spark, kind: str) -> None:
    """Nothing of the statement is left, and it can be run again."""
    until(lambda: not running(spark, kind))
    assert db.execute("SELECT * FROM reclock.holds").rows == []
    assert not db.preparing
    assert db._core.world.catalog.find(("v",)) is None


@pytest.mark.usefixtures("slow", "other")
@pytest.mark.parametrize("kind", STATEMENTS)
def test_cancel_while_a_job_runs(db: Database, spark: Spark, kind: str) -> None:
    session, raised = db.session(), []
    (parsed,) = parse_statements(STATEMENTS[kind])

    def run() -> None:
        try:
            session.run(parsed)
        except Interrupted as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: running(spark, kind))
    begun = monotonic()
    session.interrupt.set(REASON)
    thread.join(DEADLINE)
    assert monotonic() - begun < SOON
    assert raised == [REASON]
    ended(db, spark, kind)


@pytest.mark.usefixtures("slow", "other", "ctrl_c")
@pytest.mark.parametrize("kind", STATEMENTS)
def test_ctrl_c_while_a_job_runs(db: Database, spark: Spark, kind: str) -> None:
    told = []

    def press() -> None:
        until(lambda: running(spark, kind))
        told.append(monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            db.execute(STATEMENTS[kind])
        assert monotonic() - told[0] < SOON
    finally:
        thread.join(DEADLINE)
    ended(db, spark, kind)


def test_spark_does_not_take_ctrl_c(spark: Spark) -> None:
    """Its handler cancels all jobs there are."""
    assert spark.session.range(1).count() == 1
    handler = signal.getsignal(signal.SIGINT)
    assert "pyspark" not in str(getattr(handler, "__module__", ""))
