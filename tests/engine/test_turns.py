"""Ticks give way: to who waits now, and to who has paused them."""

from __future__ import annotations

import threading
from time import monotonic, sleep

from reclock.engine import turns as turns_
from reclock.engine.turns import Turns
from reclock.time.timeline import EPOCH_MS, User


def ticking(turns, pace=EPOCH_MS, stopped=lambda: False):
    over = threading.Event()

    def tick():
        turns.give_way(pace, stopped)
        over.set()

    threading.Thread(target=tick, daemon=True).start()
    return over


def test_a_tick_waits_for_those_who_wait_when_it_is_due_and_no_others():
    turns = Turns()
    assert ticking(turns).wait(60)
    with turns.waiting():
        over = ticking(turns)
        assert not over.wait(0.2)
        later = turns.waiting()
        later.__enter__()
    assert over.wait(60)
    later.__exit__(None, None, None)


def test_who_waits_for_the_tick_of_a_pace_keeps_no_other_from_ticking():
    turns = Turns()
    with turns.waiting({EPOCH_MS}):
        assert ticking(turns, User("other")).wait(60)
        over = ticking(turns)
        assert not over.wait(0.2)
    assert over.wait(60)


def test_a_pause_is_of_a_pace_and_does_not_last_for_ever(monkeypatch):
    turns = Turns()
    with turns.pausing({EPOCH_MS}):
        over = ticking(turns)
        assert turns.is_paused(EPOCH_MS)
        assert ticking(turns, User("other")).wait(60)
        assert not over.wait(0.2)
    assert over.wait(60)
    monkeypatch.setattr(turns_, "LONGEST", 0.3)
    with turns.pausing({EPOCH_MS}):
        assert ticking(turns).wait(60)


def test_a_loop_that_is_stopped_waits_for_nobody():
    turns = Turns()
    stopped = threading.Event()
    with turns.waiting(), turns.pausing({EPOCH_MS}):
        over = ticking(turns, stopped=stopped.is_set)
        assert not over.wait(0.2)
        stopped.set()
        assert over.wait(60)


def test_a_statement_gets_its_turn_from_a_loop_that_never_rests(opener):
    """Each tick holds the lock for longer than the interval; the statement waits for one."""
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
    pull, ticks = db._core.intakes.pull, []

    def slowly(*args, **more):
        opener.clock.advance(5)
        ticks.append(monotonic())
        sleep(0.05)
        pull(*args, **more)

    db._core.intakes.pull = slowly
    try:
        for n in range(20):
            begun = monotonic()
            db.execute(f"INSERT INTO t VALUES ({n})")
            missed = [at for at in ticks if begun < at < monotonic()]
            assert len(missed) <= 3
    finally:
        db._core.intakes.pull = pull
    assert db.execute("SELECT count(*) FROM t").rows == [(20,)]
