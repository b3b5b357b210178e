"""What a test leaves behind is found, and named."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from .leaks import Surroundings, Threads

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_variables_and_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECLOCK_GONE", "1")
    monkeypatch.setenv("RECLOCK_OTHER", "1")
    was = os.getcwd()
    before = Surroundings()
    assert before.changes({}) == []
    monkeypatch.delenv("RECLOCK_GONE")
    monkeypatch.setenv("RECLOCK_NEW", "2")
    monkeypatch.setenv("RECLOCK_OTHER", "2")
    monkeypatch.chdir(tmp_path)
    assert before.changes({"RECLOCK_OTHER": "a reason"}) == [
        "variable RECLOCK_GONE was '1', is None",
        "variable RECLOCK_NEW was None, is '2'",
        f"the working directory was {was}, is {tmp_path}",
    ]


def test_threads_are_named_with_the_test_that_started_them() -> None:
    threads, over = Threads(), threading.Event()
    runs = threading.Thread(target=over.wait, name="runs")
    ends = threading.Thread(target=lambda: over.wait(0.05), name="ends")
    sessions = threading.Thread(target=over.wait, name="sessions")
    try:
        runs.start()
        ends.start()
        threads.note("test_this")
        threads.note("test_that")
        later = Threads()
        sessions.start()
        later.belong_to_the_session()
        assert threads.left(0.5) == ["thread 'runs' runs still, started in test_this"]
    finally:
        over.set()
        for thread in (runs, ends, sessions):
            thread.join()
    assert threads.left() == []
