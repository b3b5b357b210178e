"""Statements that are told to stop, wherever they wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.session.session import Session

    from .conftest import Opener

REASON = Interrupted("enough")


def stopped(session: Session, sql: str, waiting: Callable[[], bool]) -> BaseException:
    """Return what a statement raises that is interrupted while it waits."""
    failed: list[BaseException] = []
    (parsed,) = parse_statements(sql)

    def run() -> None:
        try:
            session.run(parsed)
        except Interrupted as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not waiting():
        thread.join(0.01)
    while thread.is_alive():
        session.interrupt.set(REASON)
        thread.join(0.1)
    session.interrupt.clear()
    return failed[0]


def test_a_read_that_waits_for_its_time(opener: Opener) -> None:
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    session = db.session()
    holds = "SELECT count(*) FROM reclock.holds"
    found = stopped(
        session, "SELECT * FROM t AS OF 99999999", lambda: db.execute(holds).rows != [(0,)]
    )
    assert found is REASON
    assert session.execute("SELECT 1").rows == [(1,)]


def test_a_write_that_waits_for_its_turn(opener: Opener) -> None:
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    session = db.session()
    with db._core.lock:
        found = stopped(session, "INSERT INTO t VALUES (1)", lambda: True)
    assert found is REASON
    assert db.execute("SELECT * FROM t").rows == []


def test_who_waits_is_woken_and_the_first_reason_counts() -> None:
    interrupt, woken = Interrupt(), []
    with interrupt.waking(lambda: woken.append(1)):
        interrupt.set(REASON)
        interrupt.set(Interrupted("again"))
    assert woken == [1, 1]
    with pytest.raises(Interrupted, match="enough"):
        interrupt.check()
    with pytest.raises(Interrupted), interrupt.waking(lambda: woken.append(2)):
        raise AssertionError
    interrupt.clear()
    interrupt.check()
    assert woken == [1, 1]
