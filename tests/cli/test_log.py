"""What a command that keeps running says."""

from __future__ import annotations

import io
import json
import logging

import pytest
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


def test_a_warning_has_its_words():
    file = io.StringIO()
    log = Log(Console(file=file, width=40), ManualClock(0))
    log.say("no_users", "no role can log in yet", level="warning")
    assert file.getvalue().endswith(
        ' event=no_users message="no role can log in yet" level=warning\n'
    )


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


def adopted(form, tell):
    file = io.StringIO()
    log = Log(Console(file=file, width=40), ManualClock(0), form)
    handler = log.adopt()
    try:
        tell()
    finally:
        logging.getLogger().removeHandler(handler)
    return file.getvalue()


def test_errors_of_libraries_have_codes_and_tracebacks_are_of_one_line():
    def broken():
        try:
            raise ValueError("no\nway")
        except ValueError:
            logging.getLogger("asyncio").exception("it broke")

    (line,) = adopted("json", broken).splitlines()
    found = json.loads(line)
    assert (found["level"], found["code"], found["message"]) == ("error", "XX000", "it broke")
    assert found["error"].startswith("Traceback")
    assert found["error"].endswith("ValueError: no\nway\n")
    (line,) = adopted("text", broken).splitlines()
    assert "code=XX000" in line
    assert r"ValueError: no\nway" in line
    for name, code in (("confluent_kafka", "58000"), ("reclock.some", "XX000")):
        said = adopted("json", lambda name=name: logging.getLogger(name).error("gone"))
        assert json.loads(said)["code"] == code

    def known():
        try:
            raise Corrupt("no")
        except Corrupt:
            logging.getLogger("reclock.some").exception("look")

    assert json.loads(adopted("json", known))["code"] == "XX001"
    calm = json.loads(adopted("json", lambda: logging.getLogger("a").warning("careful")))
    assert "code" not in calm


def test_what_a_command_ends_with_is_a_line_for_machines():
    file = io.StringIO()
    log = Log(Console(file=file, width=40), ManualClock(0), "json")
    with pytest.raises(SystemExit) as ended, log.ending():
        raise Corrupt("no", detail="why")
    assert ended.value.code == 1
    found = json.loads(file.getvalue())
    assert (found["event"], found["level"], found["code"]) == ("failed", "error", "XX001")
    assert found["error"] == "no\ndetail: why"
    with pytest.raises(Corrupt), Log(Console(file=file), ManualClock(0)).ending():
        raise Corrupt("no")


def test_people_get_words():
    assert said(terminal=True) == "the sink [x] runs\n"


def test_programs_get_pairs():
    expected = 'time=2023-11-14T22:13:20.123+00:00 event=sink name="a b" state=running lag_ms=7\n'
    assert said(terminal=False) == expected
