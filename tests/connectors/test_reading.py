"""What travels to a task that reads has nothing with it that only statements need."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from engines.task_engine import LoopEngine, TaskModel
from reclock.clock import ManualClock
from reclock.session.database import Database

LOADING = """
import pickle, sys
from pathlib import Path
stager, shares = pickle.loads(Path(sys.argv[1]).read_bytes())
rows = sum(piece.rows for share in shares for piece in stager.staged(share))
print(rows, *(name for name in ("sqlglot", "sqlalchemy", "pyspark") if name in sys.modules))
"""


@pytest.mark.placed
def test_a_task_reads_without_a_parser_of_sql(tmp_path, monkeypatch):
    sent = tmp_path / "sent"

    def stage(self, stager, shares, title, *, stop=None):
        sent.write_bytes(pickle.dumps((stager, shares)))
        return TaskModel.stage(self, stager, shares, title, stop=stop)

    monkeypatch.setattr(LoopEngine, "stage", stage)
    (tmp_path / "rows.json").write_text('{"a": 1}\n{"a": 2}\n')
    clock = ManualClock(1_000)
    engine = LoopEngine(None)
    with Database(tmp_path / "state", engine, clock=clock, background=False) as db:
        engine._store = db._core.segments
        db.execute(f"CREATE SOURCE t (a INT) FROM FILE '{tmp_path}/rows.json' FORMAT JSON")
        clock.advance(1_000)
        db.tick()
        assert db.execute("SELECT sum(a) FROM t").rows == [(3,)]
    command = [sys.executable, "-c", LOADING, str(sent)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == ["2"]
