"""``reclock run``: a file is applied, kept running, and can be run again."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from reclock import ManualClock
from reclock.cli.progress import PipelineProgress
from reclock.cli.run import apply
from reclock.coordinator.database import Database
from reclock.errors import DuplicateName
from reclock.sql.parse import parse_statements
from reclock.testing.model_engine import ModelEngine

PIPELINE = """
CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 5);
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM numbers;
"""


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "db", ModelEngine(), clock=ManualClock(1_000), background=False) as db:
        yield db


def test_a_file_is_applied_and_kept_running_and_can_be_run_again(tmp_path):
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE)
    command = [sys.executable, "-m", "reclock", "run", str(path), "--state", str(tmp_path / "s")]
    for expected in ("CREATE SOURCE  CREATE", "CREATE SOURCE (unchanged)"):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            said = ""
            deadline = time.monotonic() + 60
            while not re.search(r"numbers: running, [1-9]\d* records", said):
                said += process.stderr.readline()
                assert time.monotonic() < deadline, said
            process.send_signal(signal.SIGINT)
            said += process.stderr.read()
        assert process.returncode == 0, said
        assert expected in said
        assert said.rstrip().endswith("stopped")


def test_another_text_for_the_same_name_is_an_error(db):
    (first, _), (other,) = (
        parse_statements(PIPELINE),
        parse_statements("CREATE SOURCE numbers FROM LOAD GENERATOR BANK"),
    )
    assert apply(db, first) == "CREATE SOURCE"
    assert apply(db, first) == "CREATE SOURCE (unchanged)"
    with pytest.raises(DuplicateName):
        apply(db, other)


def test_bars_on_a_terminal_show_how_far_sources_are(db):
    for parsed in parse_statements(PIPELINE):
        apply(db, parsed)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with PipelineProgress(db, console) as progress:
        progress.update()
        for _ in range(2):
            db._core.clock.advance(1_000)
            db.tick()
            progress.update()
    shown = screen.getvalue()
    assert "numbers" in shown
    assert "10/10" in shown
    assert "running" in shown
