"""``reclock run``: a file is applied, kept running, and can be run again."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from click.testing import CliRunner
from rich.console import Console

from reclock import ManualClock
from reclock.cli.log import Log
from reclock.cli.progress import PipelineProgress
from reclock.cli.run import apply, keep, run
from reclock.coordinator.database import Database
from reclock.errors import Fenced, UndefinedName
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
    for expected in ('done="CREATE SOURCE" statement="CREATE', "done=unchanged"):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            said = ""
            deadline = time.monotonic() + 60
            while not re.search(r"event=source name=numbers state=running records=[1-9]", said):
                said += process.stderr.readline()
                assert time.monotonic() < deadline, said
            process.send_signal(signal.SIGINT)
            said += process.stderr.read()
        assert process.returncode == 0, said
        assert expected in said
        assert said.rstrip().endswith("event=stopped")


def test_a_dry_run_makes_nothing(tmp_path):
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE)
    state = tmp_path / "s"
    done = CliRunner().invoke(run, [str(path), "--state", str(state), "--dry-run"])
    assert done.exit_code == 0
    assert done.stderr.count("event=planned done=create") == 2
    assert not state.exists()
    path.write_text(PIPELINE + "CREATE VIEW v AS SELECT nothing FROM total;")
    done = CliRunner().invoke(run, [str(path), "--state", str(state), "--dry-run"])
    assert isinstance(done.exception, UndefinedName)
    assert "nothing" in str(done.exception)


def test_what_cannot_go_on_ends_with_its_reason(db, monkeypatch):
    monkeypatch.setattr(Database, "failure", Fenced("another process took over this state"))
    with pytest.raises(Fenced, match="took over"):
        keep(db, Log(Console(), ManualClock(0)), threading.Event())


def test_bars_on_a_terminal_show_how_far_sources_are(db):
    screen = io.StringIO()
    log = Log(Console(file=screen, force_terminal=True, width=120), ManualClock(0))
    apply(db, PIPELINE, log)
    with PipelineProgress(db, log) as progress:
        progress.update()
        for _ in range(2):
            db._core.clock.advance(1_000)
            db.tick()
            progress.update()
    shown = screen.getvalue()
    assert "numbers" in shown
    assert "10/10" in shown
    assert "running" in shown
