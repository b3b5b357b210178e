"""``reclock serve`` as a process: it listens, answers, and ends when it is told to."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
import trustme

from reclock.cli.tls import tls_context
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path


def test_it_listens_answers_and_ends(tmp_path: Path) -> None:
    init = tmp_path / "init.sql"
    init.write_text("CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (7);")
    command = [sys.executable, "-m", "reclock", "serve", "--state", str(tmp_path / "state")]
    with subprocess.Popen(
        [*command, "--port", "0", "--trust-local", "--init", str(init)],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        listening = next(line for line in lines if "event=listening" in line)
        port = re.search(r"port=(\d+)", listening)
        assert port is not None
        with psycopg.connect(f"host=127.0.0.1 port={port[1]} user=me", autocommit=True) as client:
            assert client.execute("SELECT a FROM t WHERE a = 7").fetchall() == [(7,)]
            process.send_signal(signal.SIGTERM)
            rest = list(lines)
        assert process.wait(60) == 0
    assert "event=stopped" in rest[-1]


def test_a_source_that_fails_is_in_the_log(tmp_path: Path) -> None:
    """Nobody asks a server: what fails in the background says so by itself."""
    data, init = tmp_path / "n.json", tmp_path / "init.sql"
    data.write_text('{"n": 1}\n')
    init.write_text(
        f"CREATE SOURCE numbers (n INT) FROM FILE '{data}' FORMAT JSON WITH (on_error = 'stop');"
    )
    command = [sys.executable, "-m", "reclock", "serve", "--state", str(tmp_path / "state")]
    with subprocess.Popen(
        [*command, "--port", "0", "--trust-local", "--init", str(init)],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        next(line for line in lines if "event=listening" in line)
        with data.open("a") as file:
            file.write("nope\n")
        said = next(line for line in lines if "name=numbers" in line and "failed" in line)
        process.send_signal(signal.SIGTERM)
        list(lines)
        assert process.wait(60) == 0
    assert "level=error" in said
    assert "stopped at a record that cannot be decoded" in said


def test_it_serves_http_and_says_all_in_json(tmp_path: Path) -> None:
    """Each line is an object, up to the last; probes need no log-in."""
    state = ["--state", str(tmp_path / "state"), "--log-format", "json"]
    command = [sys.executable, "-m", "reclock", "serve", *state, "--port", "0"]
    with subprocess.Popen(
        [*command, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = []
        for line in iter(process.stderr.readline, ""):
            lines.append(json.loads(line))
            if lines[-1]["event"] == "http":
                break
        url = lines[-1]["url"]
        assert httpx.get(f"{url}healthz", timeout=30).json() == {"status": "ok"}
        assert httpx.get(f"{url}readyz", timeout=30).status_code == 200
        assert httpx.get(f"{url}metrics", timeout=30).status_code == 401
        process.send_signal(signal.SIGTERM)
        lines += [json.loads(line) for line in iter(process.stderr.readline, "")]
        assert process.wait(60) == 0
    events = {line["event"]: line for line in lines}
    assert {"opening", "no_users", "listening", "http", "http_refused", "stopped"} <= events.keys()
    assert all(line.keys() >= {"time", "level", "event"} for line in lines)
    assert (events["http_refused"]["code"], events["http_refused"]["level"]) == ("28000", "warning")


def test_what_it_cannot_begin_with_is_said_in_json(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        state = ["--state", str(tmp_path / "state"), "--log-format", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "reclock", "serve", *state, "--port", "0", "--http", place],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert done.returncode == 1
    last = [json.loads(line) for line in done.stderr.splitlines()][-1]
    assert (last["event"], last["level"], last["code"]) == ("failed", "error", "22023")
    assert "cannot listen for HTTP" in last["error"]


def test_certificates(tmp_path: Path) -> None:
    assert tls_context(None, None) is None
    certificate = trustme.CA().issue_cert("localhost")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(chain)
    certificate.private_key_pem.write_to_path(key)
    assert tls_context(chain, key) is not None
    with pytest.raises(InvalidValue, match="cannot read the certificate"):
        tls_context(chain, chain)
    with pytest.raises(InvalidValue, match="of no use"):
        tls_context(None, key)
