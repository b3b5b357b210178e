"""All work as jobs on a loop: what the model says, and references instead of rows."""

from __future__ import annotations

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from forced import forced
from reclock import ManualClock
from reclock.session.database import Database

SCRIPT = (
    "CREATE TABLE t (k INT PRIMARY KEY, a INT)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 2), (4, 0)",
    "CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n, max(k) AS k FROM t GROUP BY a",
    "CREATE MATERIALIZED VIEW j AS SELECT t.k, m.n FROM t JOIN m ON t.a = m.a",
    "UPDATE t SET a = 2 WHERE k = 1",
    "DELETE FROM t WHERE k = 3",
)


def answers(path, engine):
    clock = ManualClock(1_000)
    with Database(path, engine(), clock=clock, background=False) as db:
        for statement in SCRIPT:
            db.execute(statement)
            clock.advance(1_000)
            db.tick()
        found = [sorted(db.execute(f"SELECT * FROM {name}").rows) for name in ("t", "m", "j")]
        places = db.execute("SELECT DISTINCT place FROM reclock.ticks WHERE rows > 0").rows
        assert db.check() == []
    return found, {place for (place,) in places}


def test_forced_databases_compute_on_a_loop(tmp_path):
    expected, places = answers(tmp_path / "model", ModelEngine)
    assert places == {"driver"}
    with forced("loop", None):
        for engine in (ModelEngine, LocalEngine):
            found, places = answers(tmp_path / engine.__name__, engine)
            assert found == expected
            assert places == {"spark"}
