"""``reclock doctor`` finds what is wrong, and says what to do."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from engines.model_engine import ModelEngine
from reclock import ManualClock, java
from reclock.cli import doctor as doctors
from reclock.cli.doctor import doctor
from reclock.errors import JavaMissing
from reclock.session.database import Database
from reclock.testing.kafka_log import MemoryKafka


def examined(*options):
    return CliRunner().invoke(doctor, [*options])


@pytest.fixture
def state(tmp_path):
    with Database(tmp_path / "db", ModelEngine(), clock=ManualClock(1), background=False) as db:
        db.execute("CREATE TABLE t (a INT)")
        db.execute("INSERT INTO t VALUES (1)")
    return tmp_path / "db"


def test_a_fit_machine_and_a_whole_state(state):
    result = examined("--state", str(state))
    assert result.exit_code == 0, result.output
    assert "BAD" not in result.output
    for what in ("python", "java", "disk", "state", "clock"):
        assert f"ok   {what}: " in result.output


def test_a_state_with_a_kafka_source_is_whole_without_its_broker(tmp_path):
    kafka = MemoryKafka()
    with Database(
        tmp_path / "db", ModelEngine(), clock=ManualClock(1), background=False,
        clusters=lambda connection: kafka.cluster(connection.isolation),
    ) as db:  # fmt: skip
        topic = kafka.create_topic(1)
        db.execute(f"CREATE SOURCE k (a INT) FROM KAFKA BROKER 'b' TOPIC '{topic}' FORMAT JSON")
    result = examined("--state", str(tmp_path / "db"))
    assert result.exit_code == 0, result.output
    assert "is whole" in result.output


def test_without_java(monkeypatch, tmp_path):
    def missing():
        raise JavaMissing("no java", hint="install one")

    monkeypatch.setattr(java, "find_java", missing)
    result = examined("--state", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "BAD  java: no java\n     to do: install one" in result.output


def test_without_space(monkeypatch, tmp_path):
    monkeypatch.setattr(doctors, "NEEDED_GB", 1e12)
    assert "BAD  disk" in examined("--state", str(tmp_path / "none")).output


def test_a_broker_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(doctors, "_PATIENCE_SECONDS", 0.5)
    result = examined("--state", str(tmp_path / "none"), "--broker", "127.0.0.1:1")
    assert result.exit_code == 1
    assert "BAD  kafka: Kafka at 127.0.0.1:1 does not answer" in result.output
    assert "to do: see that the address is right" in result.output
    assert "ok   state: there is none in " in result.output


def test_a_state_that_is_no_database(state):
    (state / "reclock.db").write_bytes(b"nothing that is a database" * 99)
    result = examined("--state", str(state))
    assert result.exit_code == 1
    assert "BAD  state: " in result.output


def test_a_clock_that_is_behind(tmp_path):
    far = ManualClock(32_503_680_000_000)
    with Database(tmp_path / "db", ModelEngine(), clock=far, background=False) as db:
        db.execute("CREATE TABLE t (a INT)")
    result = examined("--state", str(tmp_path / "db"))
    assert "BAD  clock" in result.output
