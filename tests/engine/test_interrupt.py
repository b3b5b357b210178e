"""Ctrl-C, wherever it comes: a statement has happened or not, and the database goes on.

An interrupt is raised where a function of reclock is called, at points spread over a statement.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import reclock
from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.session.database import Database

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = str(Path(reclock.__file__).parent)
STATEMENTS = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
    "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS total FROM t",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
    "UPDATE t SET a = a + 1 WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "SELECT * FROM v",
    "CREATE INDEX i ON t (a)",
    "DROP INDEX i",
)
POINTS = 6
PARTS = 5  # of the slow test: each fits a shard
QUICK = ("CREATE MATERIALIZED", "INSERT", "UPDATE")


class Interrupt:
    """Counts calls, of one function or of all, and raises at one of them."""

    def __init__(self, at: int | None = None, name: str | None = None) -> None:
        self.at = at
        self.name = name
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        ours = frame.f_code.co_filename.startswith(PACKAGE)
        # One that is raised when a generator is closed is nobody's: Python prints it.
        if event != "call" or not ours or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return
        if self.name not in (None, frame.f_code.co_name):
            return
        self.calls += 1
        if self.calls == self.at:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def during(self, db: Database, statement: str) -> None:
        sys.setprofile(self)
        try:
            db.execute(statement)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)


def contents(db: Database) -> dict[str, list[tuple[object, ...]]]:
    kinds = dict(db.execute("SELECT name, kind FROM reclock.objects").rows)
    found = {
        name: sorted(db.execute(f"SELECT * FROM {name}").rows) for name in "tv" if name in kinds
    }
    return {**found, "names": [(name,) for name in sorted(kinds)]}


def opened(path: Path, clock: ManualClock) -> Database:
    return Database(path, LocalEngine(), clock=clock, background=False)


def interrupted(path: Path, place: int, interrupt: Interrupt) -> None:
    """Run the statements up to one, which is interrupted; what is there then must be right."""
    clock = ManualClock(1_000)
    with opened(path, clock) as db:
        for statement in STATEMENTS[:place]:
            db.execute(statement)
            clock.advance(1_000)
        before = contents(db)
        interrupt.during(db, STATEMENTS[place])
        clock.advance(1_000)
        assert db.check() == []
        after = contents(db)
        if "v" in after:
            total = sum(a for _, a in after["t"]) if after["t"] else None
            assert after["v"] == [(len(after["t"]), total)]
        if after == before:  # it has not happened: it can
            db.execute(STATEMENTS[place])
            after = contents(db)
    with opened(path, clock) as db:
        assert db.check() == []
        assert contents(db) == after


@pytest.mark.parametrize(
    "place", [n for n, statement in enumerate(STATEMENTS) if statement.startswith(QUICK)]
)
def test_an_interrupt_leaves_a_database_that_goes_on(tmp_path: Path, place: int) -> None:
    whole = Interrupt()
    interrupted(tmp_path / "whole", place, whole)
    for n in range(POINTS):
        at = 1 + whole.calls * (n + 1) // (POINTS + 1)
        interrupted(tmp_path / f"{n}", place, Interrupt(at))
    # when it is durable, and memory does not know yet
    interrupted(tmp_path / "durable", place, Interrupt(1, "followed"))


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize("place", range(len(STATEMENTS)), ids=lambda n: STATEMENTS[n].split(" ")[0])
@pytest.mark.parametrize("part", range(PARTS))
def test_an_interrupt_anywhere(tmp_path: Path, place: int, part: int) -> None:
    whole = Interrupt()
    interrupted(tmp_path / "whole", place, whole)
    for at in range(1 + 5 * part, whole.calls, 5 * PARTS):
        interrupted(tmp_path / f"{at}", place, Interrupt(at))
