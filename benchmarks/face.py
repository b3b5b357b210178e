"""What people wait for: the help of the command, and a pipeline that is started again.

``reclock --help`` in a process of its own; and ``reclock run`` on a state that is there, whose view
needs Spark, from the start of the process until its first tick, against the
start of Spark alone. Medians of rounds that alternate.
"""

from __future__ import annotations

import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Measure, median_seconds
from benchmarks.sink_restart import _called

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 3
PIPELINE = """
CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 100);
CREATE MATERIALIZED VIEW roots AS SELECT sqrt(counter::double precision) AS root FROM numbers;
"""
RECLOCK = [sys.executable, "-m", "reclock"]
_TICKED = re.compile(r"event=tick state=running")


def until_first_tick(home: Path) -> float:
    """Return how long ``reclock run`` took until its first tick; then stop it."""
    command = [*RECLOCK, "run", "pipeline.sql", "--state", "state"]
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if _TICKED.search(line):
                break
        took = time.perf_counter() - began
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0
    return took


def run() -> Iterator[Measure]:
    """Measure the help, and a second start."""
    helped = median_seconds(
        lambda: subprocess.run([*RECLOCK, "--help"], check=True, stdout=subprocess.DEVNULL), 5
    )
    yield Measure("reclock --help", f"{helped:.2f} s", "≤ 0.3 s", helped <= 0.3)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        (home / "pipeline.sql").write_text(PIPELINE, encoding="utf-8")
        first = until_first_tick(home)
        pairs = [(_called("start_spark()"), until_first_tick(home)) for _ in range(ROUNDS)]
    spark, again = (statistics.median(times) for times in zip(*pairs, strict=True))
    yield Measure("start of Spark", f"{spark:.1f} s")
    yield Measure("reclock run on a new state, to the first tick", f"{first:.1f} s")
    needed = "≤ start of Spark + 2 s"
    yield Measure(
        "reclock run on a state that is there, to the first tick",
        f"{again:.1f} s",
        needed,
        again <= spark + 2,
    )
