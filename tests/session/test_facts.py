"""How everything does, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from engines.task_engine import LoopEngine
from reclock import ManualClock
from reclock.engine.place import segments_of
from reclock.session.database import Database
from reclock.session.facts import LATE_MS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.work import Work
    from reclock.engine.engine import Updates


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
        db.execute(
            "CREATE SECRET kept AS 'x'; CREATE CONNECTION k TO KAFKA (BROKER 'b:1'); "
            "CREATE SEQUENCE q; CREATE INDEX i ON t (a)"
        )
        graph = {x["name"]: x["reads"] for x in facts.graph()}
        assert graph == {"t": [], "v": ["t"], "s": [], "i": ["t"]}
        inside = facts.operators("v")
        assert inside is not None
        assert facts.operators("nothing") is None


class Either(LoopEngine):
    """Runs ticks in this process or as jobs."""

    jobs = False

    def run(self, work: Work) -> Mapping[ArrangementId, Updates]:
        """Compute where it is told to."""
        return super().run(work) if self.jobs else LocalEngine.run(self, work)


@pytest.mark.placed
def test_what_operators_took_is_averaged_over_the_ticks_of_one_place(tmp_path: Path) -> None:
    """Those on Spark count for Spark alone; a step has a time wherever it ran."""
    clock, state = ManualClock(1_000_000), tmp_path / "state"
    engine = Either(segments_of(state))
    with Database(state, engine, clock=clock, background=False) as db:
        db.execute(
            "CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT);"
            "CREATE MATERIALIZED VIEW v AS SELECT b, count(*) FROM t JOIN u USING (a) GROUP BY b"
        )
        for jobs in (False, True, True, False, False):
            engine.jobs = jobs
            db.execute("INSERT INTO t VALUES (1, 2), (3, 4); INSERT INTO u VALUES (1)")
            clock.advance(1_000)
            db.tick()
        found = db.facts.operators("v")
        assert found is not None
        measured = db.meters.steps(next(iter(db._core.world.timelines)))
        assert measured is not None
        ticks = found["ticks"]
        assert ticks["spark"] == 2
        assert ticks["driver"] >= 3
        operators = {o["operator"]: o for o in found["operators"]}
        assert {"Join", "Accumulate"} <= operators.keys()
        for operator in operators.values():
            assert operator["millis"].keys() == {"driver", "spark"}
        for name in ("Join", "Accumulate"):
            operator = operators[name]
            for place in ("driver", "spark"):
                seconds = measured.seconds[place][operator["step"]]
                assert seconds > 0
                assert operator["millis"][place] == pytest.approx(
                    1_000 * seconds / ticks[place], abs=1e-3
                )
