"""What ``reclock serve`` says of what fails in the background: once, and when it is over."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.log import Log
from reclock.cli.watch import Watch
from reclock.session.database import Database
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.testing.outlets import MemoryOutlets


class Server:
    """A database that is watched, and its log."""

    def __init__(self, path):
        self.kafka, self.clock = MemoryKafka(), ManualClock(1_000)
        self.topic = self.kafka.create_topic(1)
        self.db = Database(
            path, ModelEngine(), clock=self.clock, background=False,
            clusters=lambda connection: self.kafka.cluster(connection.isolation),
            outlets=MemoryOutlets(self.kafka),
        )  # fmt: skip
        self.said = io.StringIO()
        self.watch = Watch(self.db, Log(Console(file=self.said, width=500), self.clock))

    def look(self):
        """Return what is said now, without the times and levels; what is wrong has one."""
        self.said.seek(0)
        self.said.truncate()
        self.clock.advance(1_000)
        self.db.tick()
        self.watch.look()
        said = [line.split(" ", 1)[1] for line in self.said.getvalue().splitlines()]
        for line in said:
            level = re.search(r" level=(\w+)$", line)
            assert (level is None) == ("state=running" in line), line
            assert ("state=failed" in line) == (level is not None and level[1] == "error"), line
        return [re.sub(r" level=\w+$", "", line) for line in said]

    def source(self, rest=""):
        self.db.execute(
            f"CREATE SOURCE s (id INT) FROM KAFKA BROKER 'b' TOPIC '{self.topic}' "
            f"FORMAT JSON {rest}"
        )


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "db")
    yield made
    made.db.close()


def test_a_source_that_stalls_and_goes_on(server):
    server.source()
    assert server.look() == []
    server.kafka.running = False
    (line,) = server.look()
    assert line.startswith("event=source name=s state=stalled code=08006 detail=")
    assert server.look() == []
    server.kafka.running = True
    assert server.look() == ["event=source name=s state=running"]


def test_a_source_that_fails_for_good(server):
    server.source()
    server.kafka.delete_topic(server.topic)
    said = server.look()
    assert any(line.startswith("event=source name=s state=failed code=55000") for line in said)
    assert any("event=error name=s state=failing code=55000" in line for line in said)
    assert server.look() == []


def test_a_sink_that_stalls(server):
    server.db.execute("CREATE TABLE t (a INT)")
    server.db.execute(
        "CREATE SINK k FROM t INTO KAFKA BROKER 'b' TOPIC 'o' FORMAT JSON ENVELOPE DEBEZIUM"
    )
    assert server.look() == []
    server.kafka.running = False
    server.db.execute("INSERT INTO t VALUES (1)")
    (line,) = server.look()
    assert line.startswith("event=sink name=k state=stalled code=08006 detail=")


def test_errors_of_views_and_when_they_go(server):
    server.db.execute("CREATE TABLE t (a INT)")
    server.db.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / a FROM t")
    server.db.execute("INSERT INTO t VALUES (0)")
    (line,) = server.look()
    assert line.startswith("event=error name=v state=failing code=22012 detail=")
    server.db.execute("DELETE FROM t")
    assert server.look() == ["event=error name=v state=running"]


def test_skipped_records_are_counted_as_they_double(server):
    server.source("WITH (on_error = 'skip')")
    counts = []
    for _ in range(5):
        server.kafka.produce(server.topic, 0, Record(b"nope"))
        counts += [line for line in server.look() if line.startswith("event=skipped")]
    assert counts == [
        f"event=skipped name=s skipped={n} "
        f'message="source s has skipped {n} records: see reclock.dead_letters"'
        for n in (1, 2, 4)
    ]


def test_ticks_that_fail(server, monkeypatch):
    server.look()
    found = [(None, "58030", "a tick failed: no space", "3 attempts failed")]
    execute = server.db.execute

    def failing(sql, *given):
        result = execute(sql, *given)
        if "reclock.errors" in sql:
            result.rows[:] = found
        return result

    monkeypatch.setattr(server.db, "execute", failing)
    (line,) = server.look()
    assert line == (
        'event=tick state=failing code=58030 detail="a tick failed: no space" '
        'message="ticks: failing: a tick failed: no space"'
    )
    found[0] = (*found[0][:3], "4 attempts failed")
    assert server.look() == []
    found.clear()
    assert server.look() == ["event=tick state=running"]
