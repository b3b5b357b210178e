"""``reclock inspect`` on a state that is in use."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from reclock import ManualClock
from reclock.cli.inspect import QUESTIONS, inspect
from reclock.coordinator.database import Database
from reclock.testing.model_engine import ModelEngine


@pytest.fixture
def state(tmp_path):
    clock = ManualClock(1_000)
    with Database(tmp_path / "db", ModelEngine(), clock=clock, background=False) as db:
        db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 5)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / (counter - 3) AS x FROM n")
        clock.advance(1_000)
        db.tick()
        yield tmp_path / "db"


@pytest.mark.parametrize("what", QUESTIONS)
def test_every_question_has_an_answer(state, what):
    result = CliRunner().invoke(inspect, [what, "--state", str(state)])
    assert result.exit_code == 0, result.output
    expected = {"remap": "n", "frontiers": "upper", "sinks": "(0 rows)", "errors": "22012"}
    assert expected.get(what, "bytes") in result.output


def test_programs_get_json(state):
    result = CliRunner().invoke(inspect, ["remap", "--state", str(state), "--json"])
    rows = [json.loads(line) for line in result.output.splitlines()]
    assert {row["source"] for row in rows} == {"n"}
    assert rows[-1]["offset"] > 0
