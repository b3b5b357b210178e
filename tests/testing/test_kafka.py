"""The broker for tests leaves nothing behind, however they end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from reclock.dev.kafka import Broker

SCRIPT = """
from reclock.testing.kafka import running_kafka
with running_kafka() as kafka:
    print(kafka.directory, flush=True)
    input()
"""


@pytest.mark.slow(seconds=10)
@pytest.mark.kafka
@pytest.mark.parametrize("end", ["kill", "return"])
def test_it_ends_with_the_tests(end: str) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=pipe, stdout=pipe, text=True
    ) as run:
        assert run.stdout is not None
        directory = Path(run.stdout.readline().strip())
        running = Broker(directory).status()
        assert running is not None
        if end == "kill":
            run.kill()
        else:
            run.communicate("\n")
    deadline = time.monotonic() + 30
    while directory.exists() or Path(f"/proc/{running.pid}").exists():
        assert time.monotonic() < deadline, "the broker outlived its tests"
        time.sleep(0.02)
