"""System relations through Spark: joins and aggregates over them give what the model gives."""

from __future__ import annotations

import pytest

import reclock
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.session.database import Database
from reclock.system import RELATIONS

pytestmark = pytest.mark.spark

SCRIPT = (
    "CREATE TABLE t (k INT PRIMARY KEY, a INT)",
    "CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a",
    "CREATE MATERIALIZED VIEW bad AS SELECT 10 / a AS q FROM t",
    "CREATE VIEW quiet AS SELECT object FROM reclock.frontiers WHERE lag_ms < 100000",
    "CREATE INDEX i ON m (n)",
    "ALTER SYSTEM SET statement_timeout = '90s'",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 2), (4, 0)",
)
QUESTIONS = (
    "SELECT * FROM reclock.objects ORDER BY id",
    "SELECT * FROM reclock.frontiers ORDER BY object",
    "SELECT object, upper - since, since > 0 FROM reclock.frontiers WHERE upper > 5 ORDER BY 1",
    "SELECT object, timestamp, code, detail FROM reclock.errors",
    "SELECT name, value FROM reclock.settings WHERE value <> '1s' ORDER BY name",
    "SELECT o.kind, count(*), max(f.upper) FROM reclock.objects o LEFT JOIN reclock.frontiers f"
    " ON f.object = o.name GROUP BY o.kind ORDER BY 1",
    "SELECT t.k, o.name FROM t JOIN reclock.objects o ON o.id = 'u' || t.k ORDER BY 1",
    "SELECT phase, count(*) FROM reclock.ticks GROUP BY phase ORDER BY 1",
    "SELECT * FROM quiet ORDER BY object",
    "SELECT k FROM t WHERE k > (SELECT count(*) FROM reclock.timelines) ORDER BY k",
    "SELECT * FROM reclock.timelines",
    "SELECT count(*) FROM reclock.bindings b FULL JOIN reclock.holds h ON b.source = h.object",
    "SELECT object, pending, runs FROM reclock.arrangement_sizes WHERE operator = 'collection'"
    " AND object = 't'",
)


def test_questions_have_the_answers_of_the_model(tmp_path):
    model = Database(tmp_path / "model", ModelEngine(), clock=ManualClock(1), background=False)
    spark = reclock.open(tmp_path / "spark", clock=ManualClock(1), background=False)
    with model, spark:
        for statement in SCRIPT:
            assert spark.execute(statement) == model.execute(statement)
            assert spark.tick() == model.tick()
        for question in QUESTIONS:
            assert spark.execute(question).rows == model.execute(question).rows, question
        for name in RELATIONS:
            ours, theirs = (db.execute(f"SELECT * FROM {name}") for db in (spark, model))
            assert ours.schema == theirs.schema
        frame = spark.dataframe("SELECT name, kind FROM reclock.objects WHERE kind LIKE '%view'")
        assert {row.name for row in frame.collect()} == {"m", "bad", "quiet"}
        state = spark.execute(
            "SELECT object, operator FROM reclock.arrangement_sizes WHERE object = 'm'"
        ).rows
        assert ("m", "collection") in state
        assert ("m", "errors") in state
        assert len(state) > 2, "the count has state of its own"
