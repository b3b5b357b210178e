"""Errands that go through the store stay until their job is done, whatever is collected then."""

from __future__ import annotations

import threading

import pytest

import reclock
from reclock.dataflow.job import errand as errands

pytestmark = pytest.mark.spark

PATIENCE = 5.0


def test_garbage_is_collected_while_jobs_have_files(tmp_path, monkeypatch):
    monkeypatch.setattr(errands, "INLINE_BYTES", 0)
    sent, files, tried = errands.Errand.sent, [], []

    def watched(errand):
        text, file = sent(errand)
        assert file is not None
        files.append(file)

        def collect():
            with db._core.lock:
                tried.append(db._core.collect_garbage())

        thread = threading.Thread(target=collect, daemon=True)  # a statement that has its turn now
        thread.start()
        thread.join(PATIENCE)
        assert file in db._core.segments.names()
        return text, file

    clock = reclock.ManualClock(1_000)
    with reclock.open(tmp_path / "state", clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        db.execute("CREATE TABLE t (k INT, x INT)")
        db.execute("INSERT INTO t VALUES (1, 2), (1, 3)")
        monkeypatch.setattr(errands.Errand, "sent", watched)
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT k, sum(x * 2) AS s FROM t GROUP BY k")
        loads = len(files)
        db.execute("INSERT INTO t VALUES (2, 5)")
        clock.advance(1_000)
        db.tick()
        assert 0 < loads < len(files)
        assert tried, "the lock was never free"
        assert sorted(db.execute("SELECT * FROM v").rows) == [(1, 10), (2, 10)]
        assert not set(files) & set(db._core.segments.names())
