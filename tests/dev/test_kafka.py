"""The broker for development: starts, refuses, stops, and survives being killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from reclock.cli.main import cli
from reclock.dev import kafka as module
from reclock.dev.kafka import Broker
from reclock.errors import BrokerFailed

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def reclock(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="reclock")


def topics(address: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).topics)


@pytest.mark.kafka
def test_a_day_in_the_life_of_a_broker(tmp_path: Path) -> None:
    directory = tmp_path / "broker"
    place = ("--dir", str(directory))
    try:
        with ThreadPoolExecutor() as racers:
            first, second = racers.map(lambda _: Broker(directory).start(0), range(2))
        assert first == second, "who comes second gets the same broker"
        started = reclock("dev", "kafka", "start", "--port", "0", *place)
        address = started.stdout.splitlines()[-1]
        assert address == first.address
        host, _, port = address.partition(":")
        assert host == "127.0.0.1"
        client = AdminClient({"bootstrap.servers": address})
        client.create_topics([NewTopic("kept", 1, 1)])["kept"].result()
        again = reclock("dev", "kafka", "start", *place)
        assert again.stdout.splitlines()[-1] == address
        elsewhere = reclock("dev", "kafka", "start", "--port", "1", *place)
        assert isinstance(elsewhere.exception, BrokerFailed)
        assert f"runs on port {port}" in elsewhere.exception.message
        running = Broker(directory).status()
        assert running is not None
        status = reclock("dev", "kafka", "status", *place)
        assert status.stdout.split() == [
            "process", f"{running.pid},", "data", "in", str(directory), address,
        ]  # fmt: skip

        os.kill(running.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while Broker(directory).status() is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not (directory / "broker").exists(), "what the dead left is removed"
        assert Broker(directory).start(int(port)).address == address
        assert "kept" in topics(address)
    finally:
        stopped = reclock("dev", "kafka", "stop", *place)
    assert stopped.stdout == f"stopped {address}\n"
    gone = reclock("dev", "kafka", "status", *place)
    assert (gone.stdout, gone.exit_code) == ("not running\n", 1)
    assert reclock("dev", "kafka", "stop", *place).stdout == "not running\n"


def test_a_port_that_is_taken_is_refused_before_anything_happens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BrokerFailed, match=f"port {port} cannot be used") as caught:
            Broker(tmp_path / "broker").start(port)
    assert "--port" in str(caught.value.hint)
    assert not (tmp_path / "broker" / "data").exists()


def test_a_file_left_behind_does_not_kill_a_stranger(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "broker").write_text(f"{stranger.pid} 9092\n")
        assert Broker(tmp_path).stop() is None
        assert stranger.poll() is None
        assert not (tmp_path / "broker").exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_broker_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho no can do\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "find_java", lambda: program)
    monkeypatch.setattr(module, "kafka_jars", lambda _: tmp_path)
    with pytest.raises(BrokerFailed) as caught:
        Broker(tmp_path / "broker").start(0)
    assert caught.value.detail == "no can do"
    (tmp_path / "broker" / "data").mkdir()
    (tmp_path / "broker" / "data" / "meta.properties").write_text("cluster.id=x\n")
    with pytest.raises(BrokerFailed, match="did not start") as caught:
        Broker(tmp_path / "broker").start(0)
    assert caught.value.detail == "no can do"
    assert Broker(tmp_path / "broker").status() is None
