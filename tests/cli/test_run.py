"""``reclock run``: a file is applied, kept running, and can be run again."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import httpx
import pexpect
import pytest
from click.testing import CliRunner
from rich.console import Console

import reclock
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.log import Log
from reclock.cli.progress import PipelineProgress
from reclock.cli.run import apply, keep, run
from reclock.errors import Fenced, UndefinedName
from reclock.rows.result import Result
from reclock.session.database import Database
from reclock.session.offline import look

PIPELINE = """
CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 5);
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM numbers;
"""


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "db", ModelEngine(), clock=ManualClock(1_000), background=False) as db:
        yield db


def until(process, wanted):
    """Read what a process says until it says what is wanted."""
    said = ""
    deadline = time.monotonic() + 120
    while not re.search(wanted, said):
        line = process.stderr.readline()
        said += line
        assert line, f"it ended: {said}"
        assert time.monotonic() < deadline, said
    return said


def bound(db):
    return max(offset for (offset,) in db.execute('SELECT "offset" FROM reclock.bindings').rows)


def test_a_file_is_applied_and_kept_running_and_goes_on_after_a_kill(tmp_path):
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE)
    command = [sys.executable, "-m", "reclock", "run", str(path), "--state", str(tmp_path / "s")]
    loaded = r"event=source name=numbers state=running records=[1-9]"
    ticked = r"event=tick state=running timestamp=\d+ millis=\d+ rows=\d+"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = until(process, loaded)
        assert 'done="CREATE SOURCE" statement="CREATE' in said
        assert len(re.findall(ticked, said)) == 1
        process.kill()
    with look(tmp_path / "s") as db:
        assert db.check() == []
        before = bound(db)
        assert before > 0
        assert db.execute("SELECT n FROM total").rows == [(before,)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = until(process, loaded)
        assert said.count("done=unchanged") == 2
        process.send_signal(signal.SIGTERM)
        said += process.stderr.read()
    assert process.returncode == 0, said
    assert said.rstrip().endswith("event=stopped")
    with look(tmp_path / "s") as db:
        assert db.check() == []
        assert bound(db) > before
        assert db.execute("SELECT n FROM total").rows == [(bound(db),)]
        counted = sorted(db.execute("SELECT counter FROM numbers").rows)
        assert counted == [(n,) for n in range(1, bound(db) + 1)]


def test_a_pipeline_over_sources_without_a_time_begins_before_its_data(tmp_path):
    """A view over two sources that bring their times waits for both; so does the run."""
    data = {name: tmp_path / f"{name}.json" for name in ("a", "b")}
    made = []
    for name, place in data.items():
        place.write_bytes(b"")
        made.append(
            f"CREATE SOURCE {name} (k BIGINT, v BIGINT) FROM FILE '{place}' FORMAT JSON "
            "ENVELOPE MATERIALIZE WITH (timeline = 'shop');"
        )
    made.append("CREATE MATERIALIZED VIEW both AS SELECT a.k, b.v FROM a JOIN b ON a.k = b.k;")
    path = tmp_path / "pipeline.sql"
    path.write_text("\n".join(made))
    command = [sys.executable, "-m", "reclock", "run", str(path), "--state", str(tmp_path / "s")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        until(process, r"event=running")
        for name, value in (("a", 2), ("b", 3)):
            said = [
                {"array": [{"data": {"k": 1, "v": value}, "time": 4, "diff": 1}]},
                {"progress": {"lower": [0], "upper": [9], "counts": [{"time": 4, "count": 1}]}},
            ]
            data[name].write_text("".join(json.dumps(message) + "\n" for message in said))
        for name in data:
            until(process, rf"event=source name={name} state=running records=2")
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0
    with look(tmp_path / "s") as db:
        assert db.execute("SELECT * FROM both").rows == [(1, 3)]


def test_it_serves_http_if_it_is_asked_to(tmp_path):
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE)
    command = [sys.executable, "-m", "reclock", "run", str(path), "--state", str(tmp_path / "s")]
    command += ["--http", "127.0.0.1:0", "--trust-local"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = until(process, "event=http ")
        url = re.search(r"url=(\S+)", said)[1]
        assert httpx.get(f"{url}healthz", timeout=30).json() == {"status": "ok"}
        until(process, r"event=source name=numbers state=running")
        deadline = time.monotonic() + 60
        while httpx.get(f"{url}readyz", timeout=30).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        sources = httpx.get(f"{url}api/overview", timeout=30).json()["sources"]
        assert [source["name"] for source in sources] == ["numbers"]
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0


def test_a_person_at_a_terminal_sees_bars_and_stops_it(tmp_path):
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE)
    command = ["-m", "reclock", "run", str(path), "--state", str(tmp_path / "s")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    child = pexpect.spawn(
        sys.executable,
        command,
        env=environment,
        timeout=120,
        encoding="utf-8",
        dimensions=(30, 120),
    )
    child.expect("CREATE SOURCE  CREATE SOURCE numbers FROM LOAD GENERATOR")
    child.expect("interrupt to stop")
    child.expect(r"ticking, first at \d+")
    child.expect(r"running numbers .*[1-9]\d*/[1-9]\d*.*lag")
    child.sendintr()
    child.expect("stopped")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["a statement runs", "it is kept running"])
def test_an_interrupt_is_no_failure_whoever_handles_it(db, tmp_path, monkeypatch, number, when):
    """Spark has a handler of its own, which raises."""
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE)
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}

    def sparks(*_):
        raise KeyboardInterrupt

    def executed(sql, *_):
        signal.signal(signal.SIGINT, sparks)
        if when == "a statement runs":
            signal.raise_signal(number)
        return Result("done")

    monkeypatch.setattr(reclock, "open", lambda *_, **__: db)
    monkeypatch.setattr(db, "execute", executed)
    monkeypatch.setattr(PipelineProgress, "update", lambda _: signal.raise_signal(number))
    try:
        done = CliRunner().invoke(run, [str(path), "--state", str(tmp_path / "s")])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert done.exit_code == 0, done.output
    assert done.stderr.rstrip().endswith("event=stopped")
    assert ("event=running" in done.stderr) is (when == "it is kept running")


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


def test_people_are_told_what_a_pipeline_waits_for_as_it_starts(db):
    screen = io.StringIO()
    log = Log(Console(file=screen, force_terminal=True, width=120), ManualClock(0))
    shown = Result("SELECT", rows=[("numbers", "loading", 0, 0, 100, 0, None, None)])
    ticks = []

    class Starting:
        def execute(self, sql):
            if "reclock.ticks" in sql:
                return Result("SELECT", rows=ticks)
            return shown if "source_status" in sql else Result("SELECT", rows=[])

    with PipelineProgress(Starting(), log) as progress:
        progress.update()
    assert "waiting for the first tick" in screen.getvalue()
    screen.truncate(0)
    ticks.append((1_000, "total", 3.0, 5))
    with PipelineProgress(Starting(), log) as progress:
        progress.update()
    assert "numbers" in screen.getvalue()
    assert "waiting" not in screen.getvalue()


def test_ticks_that_fail_are_told_once(db):
    said = io.StringIO()
    log = Log(Console(file=said), ManualClock(0))
    rows = [
        ("v", "22012", "division by zero", None),
        (None, "53100", "no space left", "2 attempts failed"),
    ]
    told = {"reclock.errors": rows}

    class Failing:
        def execute(self, sql):
            return Result("SELECT", rows=next((r for n, r in told.items() if n in sql), []))

    progress = PipelineProgress(Failing(), log)
    progress.update()
    progress.update()
    rows.clear()
    progress.update()
    lines = said.getvalue().splitlines()
    assert len(lines) == 2
    assert 'event=tick state=failing code=53100 error="no space left"' in lines[0]
    assert lines[1].endswith("event=tick state=running")
