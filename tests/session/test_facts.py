"""How everything does, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock import ManualClock
from reclock.session.database import Database
from reclock.session.facts import LATE_MS
from reclock.testing.model_engine import ModelEngine

if TYPE_CHECKING:
    from pathlib import Path


def test_facts_are_those_of_the_system_relations(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    with Database(tmp_path / "state", ModelEngine(), clock=clock, background=False) as db:
        db.execute(
            "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM t;"
            "CREATE SOURCE s FROM LOAD GENERATOR COUNTER (MAX_CARDINALITY 5);"
            "INSERT INTO t VALUES (1)"
        )
        clock.advance(1_000)
        db.tick()
        facts = db.facts
        told = db.execute("SELECT object, since, upper, lag_ms FROM reclock.frontiers").rows
        assert sorted(told) == sorted((x.name, x.since, x.upper, x.lag_ms) for x in facts.objects())
        told = db.execute("SELECT source, rows, bytes, errors, lag_ms FROM reclock.source_status")
        assert told.rows == [
            (x.name, x.records, x.bytes, x.errors, x.lag_ms) for x in facts.sources()
        ]
        sizes = "SELECT object, operator, records, bytes, runs FROM reclock.arrangement_sizes"
        assert sorted(db.execute(sizes).rows) == sorted(facts.sizes())
        (timeline,) = facts.timelines()
        assert not facts.is_late(timeline)
        clock.advance(2 * LATE_MS)
        (timeline,) = facts.timelines()
        assert facts.is_late(timeline)
        inside = facts.operators("v")
        assert inside is not None
        assert facts.operators("nothing") is None
