"""``reclock inspect`` on a state that is in use."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.inspect import QUESTIONS, inspect
from reclock.session.database import Database
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.testing.outlets import MemoryOutlets


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


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_state_with_kafka_sources_and_sinks_is_looked_at_without_kafka(tmp_path, what):
    kafka, clock = MemoryKafka(), ManualClock(1_000)
    topic = kafka.create_topic(1)
    with Database(
        tmp_path / "db", ModelEngine(), clock=clock, background=False,
        clusters=lambda connection: kafka.cluster(connection.isolation),
        outlets=MemoryOutlets(kafka),
    ) as db:  # fmt: skip
        db.execute(f"CREATE SOURCE k (a INT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON")
        db.execute("CREATE SINK out FROM k INTO KAFKA BROKER 'b' TOPIC 'o' FORMAT JSON "
                   "ENVELOPE DEBEZIUM")  # fmt: skip
        kafka.produce(topic, 0, Record(b'{"a": 1}'), Record(b"nope"))
        clock.advance(1_000)
        db.tick()
        result = CliRunner().invoke(inspect, [what, "--state", str(tmp_path / "db")])
    assert result.exit_code == 0, result.output
    expected = {"remap": "k", "frontiers": "upper", "sinks": "out", "errors": "22P04"}
    assert expected.get(what, "bytes") in result.output


def test_help_shows_one_line_for_each_question():
    shown = CliRunner().invoke(inspect, ["--help"]).output
    assert "\\b" not in shown
    for what in QUESTIONS:
        assert any(line.strip().startswith(f"{what} ") for line in shown.splitlines())
