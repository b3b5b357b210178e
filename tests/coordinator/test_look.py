"""A database that is only looked at."""

from __future__ import annotations

import pytest

from reclock import ManualClock
from reclock.coordinator.database import Database
from reclock.coordinator.look import look
from reclock.errors import StorageError
from reclock.testing.model_engine import ModelEngine


def test_somebody_elses_database_can_be_looked_at(tmp_path):
    clock = ManualClock(1_000)
    with Database(tmp_path / "db", ModelEngine(), clock=clock, background=False) as db:
        db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 5)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT counter FROM n")
        clock.advance(1_000)
        db.tick()
        bound = db.execute("SELECT * FROM reclock.bindings").rows
        upper = db.execute("SELECT upper FROM reclock.frontiers WHERE object = 'v'").rows
        with look(tmp_path / "db") as copy:
            assert copy.execute("SELECT * FROM reclock.bindings").rows == bound
            frontiers = "SELECT upper FROM reclock.frontiers WHERE object = 'v'"
            assert copy.execute(frontiers).rows == upper
            assert copy.check() == []
        clock.advance(1_000)
        db.tick()
        assert len(db.execute("SELECT * FROM reclock.bindings").rows) > len(bound)


def test_there_is_nothing_to_look_at(tmp_path):
    with pytest.raises(StorageError), look(tmp_path):
        pass
