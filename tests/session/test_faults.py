"""What cannot be read because of errors, seen without a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.errors import Corrupt, ExpressionFailed
from reclock.session import faults
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MADE = """
CREATE TABLE t (k INT PRIMARY KEY, a TEXT);
CREATE MATERIALIZED VIEW bad AS SELECT k, a::int AS a FROM t;
CREATE MATERIALIZED VIEW good AS SELECT count(*) AS n FROM t;
INSERT INTO t VALUES (1, '1'), (2, 'x'), (3, 'y');
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    clock = ManualClock(1_000_000)
    with Database(tmp_path / "state", LocalEngine(), clock=clock, background=False) as made:
        made.execute(MADE)
        made.execute("SELECT * FROM good")
        yield made


def test_a_view_with_errors_is_told_with_what_to_do(db: Database) -> None:
    assert db.facts.faults.last() == []
    (fault,) = db.facts.faults.look()
    assert (fault.name, fault.kind, fault.errors) == ("bad", "materialized view", 2)
    with pytest.raises(ExpressionFailed) as raised:
        db.execute("SELECT * FROM bad")
    told = raised.value
    assert fault.error.code == told.code == "22P02"
    assert fault.error.hint == told.hint is not None
    assert "holds 2 errors" in str(fault.error.detail)
    assert [last.error.message for last in db.facts.faults.last()] == [fault.error.message]
    errors = db.execute("SELECT object, message FROM reclock.errors").rows
    assert len(errors) == 2
    assert (fault.name, fault.error.message) in errors


def test_it_goes_with_its_rows_and_comes_again(db: Database) -> None:
    look = db.facts.faults.look
    db.execute("UPDATE t SET a = '1' WHERE k = 2")
    db.execute("SELECT * FROM good")
    assert [fault.errors for fault in look()] == [1]
    db.execute("DELETE FROM t WHERE k = 3")
    assert db.execute("SELECT count(*) FROM bad").rows == [(2,)]
    assert look() == []
    db.execute("INSERT INTO t VALUES (4, 'z')")
    db.execute("SELECT * FROM good")
    assert [fault.name for fault in look()] == ["bad"]
    db.execute("DROP MATERIALIZED VIEW bad")
    assert look() == []


def test_what_has_not_changed_is_not_read_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = db.facts.faults.look()
    monkeypatch.setattr(faults, "_errors", lambda *_: pytest.fail("it is read again"))
    db.execute("CREATE TABLE other (a INT); INSERT INTO other VALUES (1)")
    db.execute("SELECT * FROM good")
    assert [f.errors for f in db.facts.faults.look()] == [f.errors for f in found] == [2]


def test_very_many_are_not_counted_to_the_end(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "MOST", 2)
    db.insert("t", [(n, f"x{n}") for n in range(10, 5_000)])
    db.execute("SELECT * FROM good")
    (fault,) = db.facts.faults.look()
    assert fault.errors == 2
    assert "or more" in str(fault.error.detail)


def test_what_cannot_be_read_now_is_read_by_the_next_look(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise Corrupt("not now")

    with monkeypatch.context() as patch:
        patch.setattr(faults, "_errors", broken)
        assert db.facts.faults.look() == []
    assert [fault.name for fault in db.facts.faults.look()] == ["bad"]


def test_a_look_and_what_was_seen_wait_for_no_lock(db: Database) -> None:
    import threading  # noqa: PLC0415

    with db._core.lock:
        thread = threading.Thread(target=db.facts.faults.look, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert [fault.name for fault in db.facts.faults.last()] == ["bad"]
