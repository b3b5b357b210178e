"""What a command that keeps running says."""

from __future__ import annotations

import io
import json
import logging

from rich.console import Console

from reclock import ManualClock
from reclock.cli.log import Log
from reclock.errors import Corrupt


def said(*, terminal):
    file = io.StringIO()
    log = Log(Console(file=file, force_terminal=terminal, width=40), ManualClock(1_700_000_000_123))
    log.say("sink", "the sink [x] runs", name="a b", state="running", lag_ms=7, detail=None)
    return file.getvalue()


def line_of(form, least="info", **more):
    file = io.StringIO()
    log = Log(Console(file=file, width=40), ManualClock(1_700_000_000_123), form, least)
    log.say("sink", "a <b>\n", name="x", **more)
    log.say("chatter", "much", level="debug")
    log.fault("failed", Corrupt("no", detail="why"))
    return file.getvalue().splitlines()


def test_machines_get_one_object_in_a_line():
    first, second = map(json.loads, line_of("json", lag_ms=7, detail=None))
    time = "2023-11-14T22:13:20.123+00:00"
    assert first == {
        "time": time, "level": "info", "event": "sink", "message": "a <b>\n", "name": "x",
        "lag_ms": 7,
    }  # fmt: skip
    assert (second["level"], second["event"], second["code"]) == ("error", "failed", "XX001")


def test_what_matters_less_is_left_out():
    assert len(line_of("text", "debug")) == 3
    assert len(line_of("text", "info")) == 2
    (only,) = line_of("text", "error")
    assert "event=failed code=XX001" in only
    assert only.endswith("level=error")


def test_what_libraries_say_is_a_line_too():
    file = io.StringIO()
    log = Log(Console(file=file, width=40), ManualClock(0), "json")
    handler = log.adopt()
    try:
        logging.getLogger("reclock.some").warning("look: %d", 7)
    finally:
        logging.getLogger().removeHandler(handler)
    found = json.loads(file.getvalue())
    assert (found["level"], found["message"], found["logger"]) == (
        "warning", "look: 7", "reclock.some",
    )  # fmt: skip


def test_people_get_words():
    assert said(terminal=True) == "the sink [x] runs\n"


def test_programs_get_pairs():
    expected = 'time=2023-11-14T22:13:20.123+00:00 event=sink name="a b" state=running lag_ms=7\n'
    assert said(terminal=False) == expected
