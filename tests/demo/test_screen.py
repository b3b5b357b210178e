"""What somebody sees who watches the demonstration."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from reclock.demo.screen import Reading, Screen

READING = Reading("running", 2, 1_500, 1_400, 499.7, 1_763_280_000_000, 740, 33, 0, 0)


def shown(reading, *, terminal):
    file = io.StringIO()
    with Screen(Console(file=file, force_terminal=terminal, width=100)) as screen:
        screen.say("kill -9")
        screen.show(reading)
    return file.getvalue()


def test_a_terminal_gets_a_panel():
    text = shown(READING, terminal=True)
    for part in ("kill -9", "running", "2 times", "1,500", "1,400", "500/s", "0.7 s", "33"):
        assert part in text


def test_elsewhere_there_are_lines():
    text = shown(READING, terminal=False)
    assert "\x1b" not in text
    assert "1500 transfers in, 1400 out at 500/s, 0 duplicates; lag 0.7 s; total 0 at 33" in text


def test_what_is_wrong_is_seen():
    text = shown(replace(READING, unbalanced=1, duplicates=4), terminal=False)
    assert "4 duplicates" in text
    assert "wrong 1 time " in text
