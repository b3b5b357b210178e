"""System relations and settings while the background loop ticks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import monotonic, perf_counter, sleep

from reclock import ManualClock
from reclock.clock import SystemClock
from reclock.engine.tick_log import PHASES, TickLog, Watch
from reclock.session.session import Session
from reclock.testing.failpoints import armed
from reclock.time.timestamp import Timestamp


def eventually(question, seconds=20.0):
    """Return the first true answer; give up after some time."""
    end = monotonic() + seconds
    while not (answer := question()) and monotonic() < end:
        sleep(0.01)
    return answer


def test_a_change_of_the_interval_does_not_wait_for_the_old_one(opener):
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '1 h'; CREATE TABLE t (a INT)")
    sleep(0.2)
    upper = db._core.world.timelines
    db.execute("ALTER SYSTEM SET timestamp_interval = '5ms'")
    opener.clock.advance(24 * 3_600_000)
    assert eventually(lambda: db._core.world.timelines is not upper)


def test_failures_of_the_loop_are_errors_until_a_tick_succeeds(opener):
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '5ms'; CREATE TABLE t (a INT)")
    query = "SELECT * FROM reclock.errors"
    assert db.execute(query).rows == []
    with armed({"tick.compute.before": "raise"}):
        opener.clock.advance(60_000)
        rows = eventually(lambda: db.execute(query).rows)
        ((name, timestamp, code, message, detail),) = rows
        (upper,) = {int(s.upper) for s in db._core.world.timelines.values()}
    assert (name, timestamp, code) == (None, upper, "XX000")
    assert message == "failpoint tick.compute.before raised"
    assert "EpochMilliseconds" in detail
    assert eventually(lambda: db.execute(query).rows == [])


def test_sessions_agree_while_ticks_go_on(opener):
    """Each answer is of one moment, whoever asks and whatever is written meanwhile."""
    opener.clock = SystemClock()
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '5ms'; CREATE TABLE t (a INT)")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
    query = (
        "SELECT f.upper, g.upper, f.since, m.n, (SELECT count(*) FROM t) "
        "FROM reclock.frontiers f, reclock.frontiers g, m WHERE f.object = 't' AND g.object = 'm'"
    )

    def writer():
        session = Session(db._core)
        for n in range(30):
            session.execute(f"INSERT INTO t VALUES ({n})")

    def reader():
        session = Session(db._core)
        seen = []
        for _ in range(20):
            result = session.execute(query)
            ((upper, other, since, kept, count),) = result.rows
            assert since <= result.timestamp < upper == other
            assert kept == count
            seen.append((result.timestamp, count))
        assert seen == sorted(seen)
        return seen

    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(writer)
        readers = [pool.submit(reader) for _ in range(2)]
        writing.result()
        answers = dict(pair for r in readers for pair in r.result())
        pairs = {pair for r in readers for pair in r.result()}
    assert len(pairs) == len(answers), "two readers agree at every time"


def test_looking_at_ticks_while_they_are_added():
    log = TickLog()

    def add():
        for n in range(3_000):
            watch = Watch()
            for _ in PHASES[1:]:
                watch.lap(n)
            log.add(Timestamp(n), watch)

    with ThreadPoolExecutor(2) as pool:
        adding = pool.submit(add)
        while not adding.done():
            rows = list(log.rows())
            assert len(rows) % len(PHASES) == 0
            times = [t for t, phase, *_ in rows if phase == "total"]
            assert times == sorted(times)
        adding.result()
    assert len(list(log.rows())) == 256 * len(PHASES)


def test_a_tick_is_where_its_updates_were_computed():
    watch = Watch()
    watch.effort.tasks, watch.effort.bytes = 4, 100  # looked at what came in; the driver computed
    assert (watch.place, watch.driver_rows("gather", 70)) == ("driver", 70)
    watch.effort.by_tasks = True
    assert (watch.place, watch.driver_rows("gather", 70)) == ("spark", 0)


def test_measuring_a_tick_costs_next_to_nothing():
    log = TickLog()
    begun = perf_counter()
    for n in range(2_000):
        watch = Watch()
        for _ in PHASES[1:]:
            watch.lap(0)
        log.add(Timestamp(n), watch)
    assert (perf_counter() - begun) / 2_000 < 1e-3


def test_opening_counts_ticks_anew(opener):
    assert isinstance(opener.clock, ManualClock)
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    assert db.execute("SELECT count(*) > 0 FROM reclock.ticks").rows == [(True,)]
    again = opener.reopened(db)
    assert again.execute("SELECT count(*) FROM reclock.ticks").rows == [(0,)]
