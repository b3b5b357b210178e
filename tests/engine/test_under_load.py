"""A pipeline beside processes that want the whole machine: it becomes ready, and ends when told.

Real processes, a real clock, and sources that never rest; deadlines that a machine with nothing
else to do keeps many times over.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BURN = "while True: pass"


@contextmanager
def burners() -> Iterator[None]:
    """Keep all processors busy, and one more."""
    count = (os.cpu_count() or 1) + 1
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burning:
            each.kill()
            each.wait()


PROGRAM = """
import sys
import reclock
from examples.bank.__main__ import PIPELINE
with reclock.open(sys.argv[1]) as db:
    print("open", flush=True)
    db.execute(PIPELINE)
    print("made", flush=True)
    while True:
        db.execute("SELECT total FROM total")
"""


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program of Python, and end it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow(seconds=30)
def test_the_bank_is_done_in_time() -> None:
    with burners(), running("-m", "examples.bank") as process:
        said, _ = process.communicate(timeout=160)
    assert process.returncode == 0, said
    assert "the total was 0 at each of" in said


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize("when", ["open", "made"])
def test_an_interrupt_ends_it_soon(tmp_path: Path, when: str) -> None:
    with burners(), running("-c", PROGRAM, str(tmp_path / "state")) as process:
        assert process.stdout is not None
        assert any(line.strip() == when for line in process.stdout)
        begun = monotonic()
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert monotonic() - begun < 30
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said
