"""``reclock init`` writes a pipeline that can be run."""

from __future__ import annotations

from click.testing import CliRunner

from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.init import init
from reclock.session.database import Database


def test_the_pipeline_runs_and_its_total_is_zero(tmp_path):
    file = tmp_path / "p.sql"
    result = CliRunner().invoke(init, [str(file)])
    assert result.exit_code == 0
    clock = ManualClock(1_000)
    with Database(tmp_path / "db", ModelEngine(), clock=clock, background=False) as db:
        db.execute(file.read_text())
        clock.advance(1_000)
        db.tick()
        assert db.execute("SELECT total FROM total").rows == [(0,)]


def test_nothing_is_overwritten(tmp_path):
    file = tmp_path / "p.sql"
    file.write_text("mine")
    result = CliRunner().invoke(init, [str(file)])
    assert result.exit_code == 1
    assert "is there already" in result.output
    assert file.read_text() == "mine"
    result = CliRunner().invoke(init, [str(tmp_path / "nowhere" / "p.sql")])
    assert "cannot write" in result.output
