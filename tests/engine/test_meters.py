"""What is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.errors import Error, UndefinedName
from reclock.session.database import Database

if TYPE_CHECKING:
    from pathlib import Path


def test_statements_and_their_errors_and_ticks_are_counted(tmp_path: Path) -> None:
    clock = ManualClock(1_000)
    with Database(tmp_path / "state", ModelEngine(), clock=clock, background=False) as db:
        db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT * FROM t")
        with pytest.raises(UndefinedName):
            db.execute("SELECT b FROM t")
        with pytest.raises(Error):
            db.subscribe("SUBSCRIBE nothing")
        clock.advance(1_000)
        db.tick()
        kinds = {kind: sum(h.buckets) for kind, h in db.meters.statements().items()}
        assert kinds["create_table"] == kinds["insert"] == 1
        assert kinds["select"] == 2
        assert kinds["subscribe"] == 1
        assert db.meters.errors() == {"42703": 1, "42P01": 1}
        assert sum(db.meters.phases["total"].now().buckets) >= 1
        assert db.meters.rows()["gather"] == 2
        assert sum(db.meters.changed().values()) >= 2
