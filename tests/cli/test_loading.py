"""What is shown while a statement takes its time."""

from __future__ import annotations

import io
import re
import threading
from time import monotonic, sleep
from types import SimpleNamespace

import pytest
from rich.console import Console

from reclock import ManualClock
from reclock.cli.loading import loading
from reclock.cli.log import Log
from reclock.dataflow.job.load import Load
from reclock.engine.parts import Progress


def watched(*, terminal, work):
    """Return what is shown while ``work`` moves a load; it waits until each step was seen."""
    file = io.StringIO()
    log = Log(Console(file=file, force_terminal=terminal, width=80), ManualClock(0))
    load = Load()
    db = SimpleNamespace(loading=load, preparing=())

    def seen(pattern):
        deadline = monotonic() + 60
        while not re.search(pattern, file.getvalue()):
            assert monotonic() < deadline, file.getvalue()
            sleep(0.01)

    with loading(db, log, "CREATE MATERIALIZED VIEW v"):
        work(load, seen)
    return file.getvalue()


def test_people_see_a_bar():
    def work(load, seen):
        seen("CREATE MATERIALIZED VIEW v …")
        load.begin(8)
        load.reach(3)
        seen("3/8")
        load.reach(8)
        seen("8/8")

    watched(terminal=True, work=work)


def test_programs_get_a_line_with_each_quarter():
    def work(load, seen):
        load.begin(8)
        for done in (2, 4, 8):
            load.reach(done)
            seen(f"done={done} total=8")
            sleep(0.3)  # it is looked at again, and nothing more is said

    lines = watched(terminal=False, work=work).splitlines()
    assert len(lines) == 3
    assert 'event=loading statement="CREATE MATERIALIZED VIEW v" done=2 total=8' in lines[0]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_statement_that_loads_nothing_or_fails_ends_it(terminal):
    before = threading.active_count()

    def work(load, seen):
        del load, seen
        message = "no such table"
        raise ValueError(message)

    with pytest.raises(ValueError, match="no such table"):
        watched(terminal=terminal, work=work)
    deadline = monotonic() + 60
    while threading.active_count() > before:  # rich does not wait for its own
        assert monotonic() < deadline, threading.enumerate()
        sleep(0.01)


def test_what_is_done_never_goes_back():
    load = Load()
    load.begin(4)
    load.reach(3)
    load.reach(2)
    assert (load.done, load.total) == (3, 4)
    load.begin(2)
    assert (load.done, load.total) == (0, 2)


@pytest.mark.parametrize("terminal", [True, False])
def test_what_follows_says_how_far_behind_it_is(terminal):
    file = io.StringIO()
    log = Log(Console(file=file, force_terminal=terminal, width=80), ManualClock(0))
    one = Progress("v", "following", 70)
    db = SimpleNamespace(loading=None, preparing=(one,))
    with loading(db, log, "CREATE MATERIALIZED VIEW v"):
        deadline = monotonic() + 60
        pattern = "following, 70 ms behind" if terminal else "event=following"
        while pattern not in file.getvalue():
            assert monotonic() < deadline, file.getvalue()
            sleep(0.01)
    assert terminal or "70 ms behind" in file.getvalue()
