"""The background loop: its grid, its ticks on demand, and what it does when they fail."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.engine.loop import last_point
from reclock.engine.supervisor import FIRST_PAUSE, LONGEST_PAUSE, PERMANENT, pause
from reclock.errors import Corrupt, Error, StatementTimeout, StorageError, StorageFull
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.time.timeline import EPOCH_MS, User

MINE = User("mine")


class Ticks:
    """Stands before every tick of the loop: counts, delays and fails them."""

    def __init__(self, monkeypatch):
        self.began = []
        self.durations = {}
        self.failing = {}
        self.at_once = 0
        self.most_at_once = 0
        self.gate = threading.Event()
        self.gate.set()
        original = __import__("reclock.engine.tick", fromlist=["tick"]).tick

        def tick(core, timeline, *, regular):
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                self.began.append((timeline, monotonic()))
                assert self.gate.wait(60)
                sleep(self.durations.pop(len(self.began), self.durations.get("each", 0)))
                if timeline in self.failing:
                    raise self.failing[timeline]
                return original(core, timeline, regular=regular)
            finally:
                self.at_once -= 1

        monkeypatch.setattr("reclock.engine.loop.tick", tick)

    def times(self, timeline=EPOCH_MS):
        return [at for which, at in self.began if which == timeline]


@pytest.fixture
def ticks(monkeypatch):
    return Ticks(monkeypatch)


@pytest.fixture
def db(opener, ticks):
    db = opener(background=True)
    every(db, "1h")
    db.execute("CREATE TABLE t (a INT)")
    return db


def every(db, interval):
    db.execute(f"ALTER SYSTEM SET timestamp_interval = '{interval}'")


def eventually(condition):
    deadline = monotonic() + 60
    while not condition():
        assert monotonic() < deadline
        sleep(0.005)


@given(passed=st.integers(0, 10**6), elapsed=st.integers(0, 10**6), interval=st.integers(1, 10**5))
def test_deadlines_lie_on_one_grid(passed, elapsed, interval):
    now = passed + elapsed
    point = last_point(passed, now, interval)
    assert point <= now < point + interval
    assert (point - passed) % interval == 0


def test_ticks_keep_to_the_interval_whatever_they_take(db, ticks):
    """A busy machine may delay some; a loop that slept between ticks has none so close."""
    ticks.durations["each"] = 0.06
    every(db, "100ms")
    eventually(lambda: len(ticks.began) > 12)
    times = ticks.times()
    assert min(b - a for a, b in itertools.pairwise(times)) < 0.15
    assert times[-1] - times[0] >= 0.1 * (len(times) - 2), "no more than one per interval"
    assert ticks.most_at_once == 1


def test_a_long_tick_is_followed_by_one_that_covers_what_was_missed(db, ticks):
    """A busy machine may spoil an attempt; a loop with another grid spoils them all."""
    kept = []
    for _ in range(8):
        every(db, "1h")
        ticks.began.clear()
        ticks.durations[1] = 0.75
        every(db, "200ms")
        eventually(lambda: len(ticks.began) >= 4)
        first, second, third, fourth = ticks.times()[:4]
        assert second - first >= 0.75
        kept.append((
            second - first < 0.9,  # at once after the long one
            third - second < 0.15,  # back on the grid: at 0.8 after the first
            0.15 < fourth - third < 0.3,
        ))  # fmt: skip
        if all(kept[-1]):
            break
    assert all(kept[-1]), kept
    assert ticks.most_at_once == 1


def test_writes_during_a_long_tick_keep_their_own_times(db, ticks):
    with db._core.lock:
        times = [db.execute(f"INSERT INTO t VALUES ({n})").timestamp for n in range(5)]
    assert len(set(times)) == 5
    db.execute("SELECT * FROM t")
    for count, time in enumerate(times, 1):
        assert len(db.execute(f"SELECT * FROM t AS OF {time}").rows) == count


def test_an_interval_that_changes_is_in_force_at_once(db, ticks):
    assert ticks.began == []
    every(db, "20ms")
    eventually(lambda: len(ticks.began) > 3)


def test_a_waiting_reader_wakes_the_loop_and_many_share_one_tick(db, ticks):
    db.execute("INSERT INTO t VALUES (1)")
    sessions = [db.session() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        with db._core.lock:
            waiting = [pool.submit(s.execute, "SELECT a FROM t") for s in sessions]
            eventually(lambda: len(db._core.holds.rows()) == 8)
        assert [w.result().rows for w in waiting] == [[(1,)]] * 8
    assert len(ticks.began) == 1
    assert db._core.holds.rows() == (), "who has its answer holds nothing"
    db.execute("SELECT a FROM t")
    assert len(ticks.began) == 1, "who need not wait wakes nobody"


def appends(db, monkeypatch):
    """Return a list that grows by one for each durable append."""
    made = []
    append = db._core.store.append
    monkeypatch.setattr(db._core.store, "append", lambda *a: made.append(a) or append(*a))
    return made


def test_readers_who_come_while_a_tick_runs_share_it_if_it_gets_to_them(db, ticks, monkeypatch):
    db.execute("INSERT INTO t VALUES (1)")
    ticks.gate.clear()
    sessions = [db.session() for _ in range(8)]
    durable = appends(db, monkeypatch)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(sessions[0].execute, "SELECT a FROM t")
        eventually(lambda: len(ticks.began) == 1)  # and waits at its gate
        others = [pool.submit(s.execute, "SELECT a FROM t") for s in sessions[1:]]
        eventually(lambda: len(db._core.holds.rows()) == 8)
        ticks.gate.set()
        assert [w.result().rows for w in (first, *others)] == [[(1,)]] * 8
    assert len(ticks.began) == 1
    assert len(durable) == 1, "the tick's: a read appends nothing"
    for session in sessions:
        session.close()


def test_readers_without_a_loop_share_a_tick_too(opener, monkeypatch):
    db = opener()
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    moments = itertools.count(2_000)
    monkeypatch.setattr(
        opener.clock, "now_ms", lambda: next(moments)
    )  # there is always a next tick
    turns = []
    lock = db._core.lock

    class Counted:
        def __enter__(self):
            turns.append(threading.get_ident())
            return lock.__enter__()

        def __exit__(self, *error):
            return lock.__exit__(*error)

    durable = appends(db, monkeypatch)
    sessions = [db.session() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        with lock:
            monkeypatch.setattr(db._core, "lock", Counted())
            waiting = [pool.submit(s.execute, "SELECT a FROM t") for s in sessions]
            eventually(lambda: len(set(turns)) == 8)
        assert [w.result().rows for w in waiting] == [[(1,)]] * 8
    assert len(durable) == 1
    for session in sessions:
        session.close()


def test_readers_who_never_stop_asking_leave_writers_half_of_the_time(db, ticks):
    ticks.durations["each"] = 0.1
    for n in range(4):
        db.execute(f"INSERT INTO t VALUES ({n})")
        assert len(db.execute("SELECT a FROM t").rows) == n + 1
    times = ticks.times()
    assert all(b - a >= 0.2 for a, b in itertools.pairwise(times))
    assert len(times) == 4


def test_a_failure_that_may_pass_is_tried_again_with_pauses(db, ticks):
    every(db, "10ms")
    db.execute("INSERT INTO t VALUES (1)")
    with armed({"tick.compute.before": "raise"}):
        with pytest.raises(StatementTimeout) as caught:
            db.execute("SET statement_timeout = '400ms'; SELECT a FROM t")
        failure = db._core.loop.failures[EPOCH_MS]
        assert "failpoint tick.compute.before raised" in caught.value.detail
        assert isinstance(failure.error, FailpointRaised)
        assert (failure.permanent, failure.code) == (False, "XX000")
        assert failure.timestamp == db._core.world[EPOCH_MS].upper
        assert 2 <= failure.attempts <= 4, "0.1 and 0.2 seconds apart, not 10 ms"
    assert db.execute("RESET statement_timeout; SELECT a FROM t").rows == [(1,)]
    for _ in range(500):  # the reader may be answered before the loop notes its success
        if not db._core.loop.failures:
            break
        sleep(0.02)
    assert db._core.loop.failures == {}


def test_pauses_double_up_to_a_limit():
    pauses = [pause(n) for n in range(1, 2_000)]
    assert pauses[0] == FIRST_PAUSE
    assert max(pauses) == pauses[-1] == LONGEST_PAUSE
    assert all(b in {2 * a, LONGEST_PAUSE} for a, b in itertools.pairwise(pauses))


@pytest.mark.parametrize("kind", PERMANENT)
def test_a_failure_that_cannot_pass_stops_its_timeline_and_no_other(db, ticks, kind):
    db.execute("CREATE TABLE m (a INT) WITH (timeline = 'mine')")
    ticks.failing[MINE] = kind("nothing to be done", detail="it is broken", hint="buy another")
    db.execute("INSERT INTO m VALUES (1); INSERT INTO t VALUES (1)")
    for _ in range(2):
        with pytest.raises(kind) as caught:
            db.execute("SELECT a FROM m")
        assert caught.value is not ticks.failing[MINE]
        assert caught.value.message == "nothing to be done"
        assert "User(mine) does not tick any more" in caught.value.detail
        assert "it is broken" in caught.value.detail
        assert caught.value.hint == "buy another"
    every(db, "5ms")
    assert db.execute("SELECT a FROM t").rows == [(1,)]
    sleep(0.2)
    failure = db._core.loop.failures[MINE]
    assert (failure.permanent, failure.attempts) == (True, 1)
    assert len(ticks.times(MINE)) == 1
    assert len(ticks.times()) > 3


def test_a_reader_that_waits_already_is_told(db, ticks):
    ticks.gate.clear()
    ticks.failing[EPOCH_MS] = Corrupt("nothing to be done")
    db.execute("INSERT INTO t VALUES (1)")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(db.session().execute, "SELECT a FROM t")
        eventually(db._core.holds.rows)
        ticks.gate.set()
        with pytest.raises(Corrupt):
            waiting.result()


@pytest.mark.parametrize("error", [OSError("no route"), StorageFull("full"), KeyError("bug")])
def test_other_failures_end_with_the_first_tick_that_succeeds(db, ticks, error):
    ticks.failing[EPOCH_MS] = error
    every(db, "5ms")
    eventually(lambda: EPOCH_MS in db._core.loop.failures)
    failure = db._core.loop.failures[EPOCH_MS]
    assert not failure.permanent
    assert isinstance(failure.error, Error)
    del ticks.failing[EPOCH_MS]
    eventually(lambda: not db._core.loop.failures)


def test_who_waits_while_the_database_closes_is_told(db, ticks):
    db.execute("INSERT INTO t VALUES (1)")
    session = db.session()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(session.execute, "SELECT a FROM t AS OF 9999999")
        eventually(db._core.holds.rows)
        db.close()
        with pytest.raises(StorageError, match="closed"):
            waiting.result()
    assert "reclock-tick" not in {thread.name for thread in threading.enumerate()}


def test_closing_waits_for_the_tick_under_way(db, ticks, opener):
    ticks.durations["each"] = 0.2
    every(db, "10ms")
    eventually(lambda: ticks.at_once)
    db.close()
    assert ticks.at_once == 0
    count = len(ticks.began)
    sleep(0.05)
    assert len(ticks.began) == count
    assert opener().execute("SHOW TABLES").rows == [("t",)]
