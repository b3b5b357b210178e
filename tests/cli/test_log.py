"""What a command that keeps running says."""

from __future__ import annotations

import io

from rich.console import Console

from reclock import ManualClock
from reclock.cli.log import Log


def said(*, terminal):
    file = io.StringIO()
    log = Log(Console(file=file, force_terminal=terminal, width=40), ManualClock(1_700_000_000_123))
    log.say("sink", "the sink [x] runs", name="a b", state="running", lag_ms=7, detail=None)
    return file.getvalue()


def test_people_get_words():
    assert said(terminal=True) == "the sink [x] runs\n"


def test_programs_get_pairs():
    expected = 'time=2023-11-14T22:13:20.123+00:00 event=sink name="a b" state=running lag_ms=7\n'
    assert said(terminal=False) == expected
