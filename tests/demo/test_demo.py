"""The demonstration itself: it ends with its verdict, and leaves nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from reclock.demo.engine import Engine

SHORT = """
import sys
from reclock.cli.main import main
from reclock.demo import story

story._LIFE_SECONDS = 1.0
sys.exit(main())
"""


def processes():
    return subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def demo(*options):
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-c", SHORT, "demo", *options],
            env={**os.environ, "TMPDIR": scratch},
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        left = [p for p in Path(scratch).iterdir() if p.name.startswith("reclock-demo-")]
        deadline = time.monotonic() + 60  # Java takes a moment to end
        while scratch in (running := processes()) and time.monotonic() < deadline:
            time.sleep(0.5)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left == []
    assert scratch not in running
    return done.stdout


@pytest.mark.kafka
def test_the_demonstration_ends_with_its_verdict():
    said = demo("--kills", "1")
    assert said.count("kill -9, with a transaction open on the broker") == 1
    assert re.search(r"exactly once: [\d,]+ transfers, [\d,]+ messages .* after 1 kill\n", said)
    assert "duplicates 0, lost 0, wrong balances 0" in said


@pytest.mark.kafka
def test_a_demonstration_that_is_ended_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "reclock", "demo"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "`reclock run` starts" in line:
                break
        time.sleep(1)
        process.terminate()
    processes = subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in processes.stdout
    assert [p for p in tmp_path.iterdir() if p.name.startswith("reclock-demo-")] == []


@pytest.mark.slow(seconds=40)
@pytest.mark.spark
def test_the_demonstration_without_a_kafka():
    said = demo("--no-kafka", "--kills", "1")
    assert re.search(r"right: [\d,]+ transfers after 1 kill\n", said)
    assert re.search(r"balances wrong at 0 of [1-9]\d* timestamps", said)


def test_a_killed_engine_takes_what_it_started_with_it(tmp_path):
    log = tmp_path / "log"
    script = "sleep 300 & echo child $!; echo started; wait"
    engine = Engine(["bash", "-c", script], log, {})
    engine.start()
    while "started" not in engine.lines:
        assert not engine.exited
    child = int(engine.lines[0].split()[1])
    engine.kill()
    assert engine.exited
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    engine.stop()
    assert (engine.kills, engine.starts) == (1, 1)
