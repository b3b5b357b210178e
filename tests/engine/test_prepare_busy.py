"""A view over sources that never rest becomes ready; a statement is left at once in each phase."""

from __future__ import annotations

import threading
from time import monotonic, sleep

import pytest

from engines.local_engine import LocalEngine
from reclock.engine import flights
from reclock.engine import preparation as prepare
from reclock.engine.detached import apart
from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted
from reclock.testing.failpoints import armed

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k"


class Slow(LocalEngine):
    """Follows more slowly than ticks come: twice as long as what it follows took to happen."""

    def __init__(self) -> None:
        super().__init__()
        self.follows = 0
        self.reached = monotonic()
        self.blocked: str | None = None
        self.blocks = lambda what: what == self.blocked
        self.entered, self.go_on = threading.Event(), threading.Event()

    def hydrate(self, *args, **more):
        self._block("hydrate")
        self.reached = monotonic()
        return super().hydrate(*args, **more)

    def follow(self, *args, **more):
        self.follows += 1
        self._block("follow")
        if self.blocked is None:
            begun = monotonic()
            sleep(min(2 * (begun - self.reached), 2))
            self.reached = begun
        return super().follow(*args, **more)

    def _block(self, what):
        if self.blocks(what):
            self.entered.set()
            assert self.go_on.wait(60)


@pytest.fixture
def busy(opener):
    """A database whose loop ticks without a rest, each tick with rows of its own."""
    opener.engine = Slow
    db = opener(background=True)
    db.execute("CREATE TABLE t (k INT)")
    db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
    over = threading.Event()
    session = db.session()

    def write():
        n = 0
        while not over.is_set():
            opener.clock.advance(1)
            session.execute(f"INSERT INTO t VALUES ({n % 5})")
            n += 1
            sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    yield db
    over.set()
    writer.join(60)
    db._engine.go_on.set()


def test_it_becomes_ready_though_what_it_follows_outruns_it(busy):
    sleep(0.3)
    with armed({"ddl.prepare.before": lambda: sleep(0.2)}):
        begun = monotonic()
        busy.execute(VIEW)
    assert monotonic() - begun < 30
    # one that did not shrink, those while ticks paused, and the one under the lock
    assert 1 <= busy._engine.follows <= 3 + prepare.PAUSED_ROUNDS
    assert not busy._core.turns._paused
    assert not busy.preparing
    time = busy.execute("SELECT 1 FROM v").timestamp
    kept = busy.execute(f"SELECT * FROM v AS OF {time}").rows
    asked = busy.execute(f"SELECT k, count(*) AS n FROM t GROUP BY k AS OF {time}").rows
    assert sorted(kept) == sorted(asked)
    before = busy.execute("SELECT sum(n) FROM v").rows
    sleep(0.1)
    assert busy.execute("SELECT sum(n) FROM v").rows > before  # ticks go on


def ticks_go_on(db):
    """Wait until a tick is done that is not yet, unless ticks pause."""
    now, until = db._core.world, monotonic() + 30
    while not db._core.turns._paused and db._core.world is now and monotonic() < until:
        sleep(0.001)


def test_ticks_of_the_pace_pause_while_it_catches_up_and_it_is_said(busy, monkeypatch):
    monkeypatch.setattr(prepare, "SHRINK", 0)  # no round is short enough, however quick it was
    monkeypatch.setattr(prepare, "SHORT", 0)
    seen = []
    follow = busy._engine.follow

    def watched(*args, **more):
        for one in busy.preparing:
            paused = bool(busy._core.turns._paused)
            seen.append((one.name, one.phase, paused))
        made = follow(*args, **more)
        ticks_go_on(busy)  # so that there is something to follow in the next round
        return made

    busy._engine.follow = watched
    with armed({"ddl.prepare.before": lambda: sleep(0.2)}):
        busy.execute(VIEW)
    assert seen[0] == ("v", "following", False)
    assert ("v", "following while ticks pause", True) in seen


def cancelled(db, sql=VIEW):
    """Run a statement that another thread cancels when it is blocked; return how long that took."""
    session = db.session()
    result = []

    def run():
        try:
            session.execute(sql)
        except Interrupted as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert db._engine.entered.wait(60)
    begun = monotonic()
    session.interrupt.set(Interrupted("canceling statement due to user request"))
    thread.join(60)
    took = monotonic() - begun
    assert [error.code for error in result] == ["57014"]
    return took


def nothing_is_left(db):
    assert db.execute("SELECT * FROM reclock.holds").rows == []
    assert not db.preparing
    assert not db._core.turns._paused
    assert db._core._unnamed == 0
    assert db._core.world.catalog.find(("v",)) is None


@pytest.mark.parametrize("phase", ["hydrate", "follow"])
def test_cancel_while_it_is_filled_and_while_it_follows(busy, phase):
    busy._engine.blocked = phase
    with armed({"ddl.prepare.before": lambda: sleep(0.1)}):
        assert cancelled(busy) < 1
    nothing_is_left(busy)
    busy._engine.go_on.set()
    busy._engine.blocked = None
    busy.execute(VIEW)  # and it can be made then


def test_cancel_while_ticks_pause(busy):
    busy._engine.blocks = lambda what: what == "follow" and bool(busy._core.turns._paused)
    busy._engine.follow = slowly(busy._engine.follow)
    with armed({"ddl.prepare.before": lambda: sleep(0.1)}):
        assert cancelled(busy) < 1
    nothing_is_left(busy)


def slowly(follow):
    def slow(*args, **more):
        sleep(0.3)
        return follow(*args, **more)

    return slow


def test_cancel_while_it_waits_for_its_turn(busy):
    entered = busy._engine.entered

    def hold():
        entered.set()

    held, go_on = threading.Event(), threading.Event()

    def other():
        with busy._core.lock:
            held.set()
            go_on.wait(60)

    thread = threading.Thread(target=other)

    def take():
        thread.start()
        held.wait(60)
        hold()

    try:
        with armed({"ddl.prepare.after": take}):
            assert cancelled(busy) < 1
    finally:
        go_on.set()
        thread.join(60)
    nothing_is_left(busy)


def test_cancel_under_the_lock(busy, monkeypatch):
    """What is left to follow then is followed apart, too; nothing is published yet."""
    monkeypatch.setattr(flights, "REFITS", -1)  # no view is published while a tick computes
    busy._engine.blocked = "never"

    def then():
        busy._engine.blocked = "follow"

    with armed({"ddl.prepare.after": then}):
        assert cancelled(busy) < 1
    nothing_is_left(busy)
    assert busy.check() == []


def test_what_is_interrupted_by_a_key_is_left_at_once():
    told, go_on = [], threading.Event()

    def work(stop):
        told.append(stop)
        assert go_on.wait(60)

    class Impatient(Interrupt):
        def waking(self, wake):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apart(Impatient(), work)
    while not told:
        sleep(0.001)
    with pytest.raises(Interrupted):
        told[0].check()
    go_on.set()


def test_what_is_done_apart_returns_and_raises_as_it_would():
    assert apart(Interrupt(), lambda _: 7) == 7
    with pytest.raises(ZeroDivisionError):
        apart(Interrupt(), lambda _: 1 // 0)
    asked = Interrupt()
    asked.set(Interrupted("stop"))
    with pytest.raises(Interrupted, match="stop"):
        apart(asked, lambda _: 7)


def test_a_statement_that_needs_nothing_new_keeps_nothing(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY)")
    db.insert("t", [(1,), (2,)])
    db.tick()
    db.execute("CREATE INDEX i ON t (k)")
    assert db._core._readers == []
