"""``reclock sql`` as a person and a script have it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pexpect
import pytest

import reclock

pytestmark = pytest.mark.spark


def run(tmp_path, *options, given=None):
    return subprocess.run(
        [sys.executable, "-m", "reclock", "sql", "--state", str(tmp_path / "s"), *options],
        input=given, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_scripts_get_rows_and_a_status(tmp_path):
    done = run(tmp_path, "-c", "CREATE TABLE t (a INT); INSERT INTO t VALUES (5)")
    assert (done.returncode, done.stdout) == (0, "CREATE TABLE\nINSERT 0 1\n")
    done = run(tmp_path, given="SELECT a FROM t;\nSELECT b FROM t;\nSELECT a FROM t;\n")
    assert done.returncode == 1
    assert done.stdout.startswith(" a\n---\n 5\n(1 row)\nERROR 42703")


def test_a_person_at_a_terminal(tmp_path):
    command = f"-m reclock sql --state {tmp_path / 's'}"
    env = {"XDG_STATE_HOME": str(tmp_path / "home"), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    child = pexpect.spawn(
        sys.executable, command.split(), env={**os.environ, **env}, timeout=60, encoding="utf-8"
    )
    child.expect("reclock=>")
    child.sendline("CREATE TABLE remembered (a INT);")
    child.expect("CREATE TABLE\r\n")
    child.expect("reclock=>")
    child.sendline("SELECT a")
    child.expect("reclock->")
    child.send("FROM remem\t")
    child.expect("bered")
    child.send(";\r")
    child.expect(r"\(0 rows\)")
    child.expect("reclock=>")
    child.sendline("SUBSCRIBE TO remembered WITH (PROGRESS);")
    child.expect("mz_progressed")
    child.expect(r"\d+\tt")
    child.sendintr()
    child.expect("stopped")
    child.expect("reclock=>")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "FROM remembered" in (tmp_path / "home/reclock/sql-history").read_text()


@pytest.mark.parametrize("listen", [(), ("--listen", "127.0.0.1:0")], ids=("socket", "port"))
def test_the_shell_is_a_client_of_what_runs(tmp_path, listen):
    (tmp_path / "p.sql").write_text("CREATE TABLE t (a INT); INSERT INTO t VALUES (7);")
    command = [sys.executable, "-m", "reclock", "run", str(tmp_path / "p.sql"), "--state"]
    running = subprocess.Popen([*command, str(tmp_path / "s"), *listen])
    try:
        while not (tmp_path / "s/serving").exists():  # its first step
            assert running.poll() is None
            time.sleep(0.01)
        done = run(tmp_path, "-c", "SELECT a FROM t")
        assert (done.returncode, done.stdout) == (0, " a\n---\n 7\n(1 row)\n"), done.stderr
        done = run(tmp_path, "-c", "SELECT b FROM t")
        assert done.returncode == 1
        assert done.stdout.startswith("ERROR 42703")
    finally:
        running.kill()
        running.wait()
    assert (tmp_path / "s/listening.json").exists()
    done = run(tmp_path, "-c", "SELECT a FROM t")
    assert (done.returncode, done.stdout) == (0, " a\n---\n 7\n(1 row)\n"), "opened by itself"


def test_a_state_that_a_program_has_is_refused_with_a_way_out(tmp_path):
    with reclock.open(tmp_path / "s", background=False):
        done = run(tmp_path, "-c", "SELECT 1")
    assert done.returncode == 1
    assert f"is in use by process {os.getpid()}" in done.stderr
    assert "hint: only reclock run and reclock serve let the shell in" in done.stderr
