"""On a real Spark: tables are copied by its tasks, killed in the middle, and followed."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

PROGRAM = """
import sys, time
import reclock

path, create = sys.argv[1:]
with reclock.open(path) as db:
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute("ALTER SYSTEM SET timestamp_interval = '200ms'")
    db.execute(create)
    while True:
        ((state, detail),) = db.execute("SELECT state, detail FROM reclock.source_status").rows
        print("state", state, detail, flush=True)
        if state == "running":
            break
        time.sleep(0.1)
    for sql in sys.stdin:
        print("rows", db.execute(sql).rows, flush=True)
"""


class Follower:
    """A process with a Spark of its own."""

    def __init__(self, path, create):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path), create],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.states = []

    def until(self, *words):
        """Read until its status says one of some words."""
        for line in self.process.stdout:
            self.states.append(line)
            if any(word in line for word in words):
                return line
        raise AssertionError(self.states[-5:])

    def ask(self, sql):
        self.process.stdin.write(f"{sql}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().removeprefix("rows ").strip()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.mark.slow(seconds=90)
def test_tasks_of_spark_copy_and_a_kill_in_the_middle_loses_nothing(upstream, tmp_path):
    upstream("CREATE TABLE big (id INT PRIMARY KEY, n INT, t TEXT)")
    upstream("CREATE TABLE bare (n INT); ALTER TABLE bare REPLICA IDENTITY FULL")
    upstream("INSERT INTO big SELECT i, 1, 'some words ' || i FROM generate_series(1, 2000000) i")
    upstream("INSERT INTO bare SELECT i % 10 FROM generate_series(1, 1000) i")
    upstream("VACUUM ANALYZE")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    create = f"CREATE SOURCE IF NOT EXISTS s {upstream.source()}"
    first = Follower(tmp_path / "state", create)
    first.until("copying 2 tables")
    named = "SELECT 1 FROM pg_stat_activity WHERE application_name ~ '^reclock_.* [0-9]+ [0-9]+$'"
    deadline = time.monotonic() + 120
    while not upstream(named):
        assert time.monotonic() < deadline
    first.kill()
    upstream("DELETE FROM big WHERE id % 2 = 0; INSERT INTO bare VALUES (100)")
    second = Follower(tmp_path / "state", create)
    try:
        second.until("state running")
        assert any("of about" in line for line in second.states)
        assert second.ask("SELECT count(*), sum(n) FROM big") == "[(1000000, 1000000)]"
        upstream("BEGIN; UPDATE big SET n = 2 WHERE id < 1000; DELETE FROM bare WHERE n = 100; "
                 "COMMIT")  # fmt: skip
        while second.ask("SELECT count(*) FROM bare") != "[(1000,)]":
            assert time.monotonic() < deadline + 120
        assert second.ask("SELECT count(*) FROM big WHERE n = 2") == "[(500,)]"
        assert second.ask("SELECT count(*) FROM reclock.errors") == "[(0,)]"
    finally:
        second.kill()
