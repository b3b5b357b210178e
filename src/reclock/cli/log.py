"""The log of a command that keeps running: one line for each event.

``text`` is for people: on a terminal words, elsewhere ``key=value`` pairs with the time and the
event first and the level last, as log collectors read them; a warning has its words as
``message``. Values with blanks, quotes or line ends are quoted as JSON does. ``json`` is one
object in a line, always. Lines below the level that was asked for are not written. What libraries
and reclock itself tell Python's ``logging`` is written the same way (``adopt``), and so is, for
machines, the error that a command ends with (``ending``). Every error has a code; that of a
library, which has none, is 58000, and that of a bug XX000, with its traceback as ``error``.

Tests: tests/cli/test_log.py, test_serve.py.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from reclock.clock import Clock

_PLAIN: Final = re.compile(r"[^\s\"'=]+")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys, but for ends of lines: names and addresses of clients may have it."""
FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")


class Log:
    """Says what happens, on a terminal or to a file."""

    def __init__(
        self, console: Console, clock: Clock, form: str = "text", least: str = "info"
    ) -> None:
        self.console = console
        self._clock = clock
        self._form = form
        self._least = LEVELS.index(least)

    def say(self, event: str, words: str, *, level: str = "info", **facts: object) -> None:
        """Say that something has happened: in words, or as an event with its facts."""
        if LEVELS.index(level) < self._least:
            return
        if self._form == "json":
            line = self._object(event, words, level, facts)
        elif self.console.is_terminal:
            line = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", words)
        else:
            line = self._line(event, words, level, facts)
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def fault(self, event: str, error: BaseException, **facts: object) -> None:
        """Say that something has failed, with its code."""
        code = error.code if isinstance(error, Error) else "XX000"
        words = str(error)
        self.say(event, words, level="error", code=code, error=words, **facts)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Write the error that a command ends with as its last line, if machines read them."""
        try:
            yield
        except Error as error:
            if self._form != "json":
                raise
            self.fault("failed", error)
            sys.exit(1)

    def adopt(self) -> logging.Handler:
        """Write what is told to ``logging`` too; return what does, to be removed at the end."""
        handler = _Adopted(self)
        logging.getLogger("reclock").setLevel(logging.INFO)  # of libraries, what is wrong alone
        logging.getLogger().addHandler(handler)
        return handler

    def _line(self, event: str, words: str, level: str, facts: dict[str, object]) -> str:
        known: dict[str, object] = {"time": self._time(), "event": event, **facts}
        if level != "info":
            told = "error" in facts
            known = {**known, "message": facts.get("message", None if told else words)}
            known["level"] = level
        return " ".join(f"{k}={quoted(v)}" for k, v in known.items() if v is not None)

    def _object(self, event: str, words: str, level: str, facts: dict[str, object]) -> str:
        known = {"time": self._time(), "level": level, "event": event, "message": words or None}
        told = {k: v for k, v in {**known, **facts}.items() if v is not None}
        return json.dumps(told, default=str)

    def _time(self) -> str:
        at = datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC)
        return at.isoformat(timespec="milliseconds")


class _Adopted(logging.Handler):
    """Hands what is told to ``logging`` to a log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.INFO)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        if record.levelno < logging.WARNING:
            level = "info"
        error = record.exc_info[1] if record.exc_info else None
        code = where = None
        if isinstance(error, Error):
            code = error.code
        elif error is not None:
            code, where = "XX000", "".join(traceback.format_exception(error))
        elif level == "error":
            code = "XX000" if record.name.partition(".")[0] == "reclock" else "58000"
        words, facts = record.getMessage(), {"logger": record.name, "code": code, "error": where}
        self._log.say("log", words, level=level, message=words, **facts)


def quoted(value: object) -> str:
    r"""Return a value as it stands in a line.

    >>> quoted(7), quoted("a b"), quoted(""), quoted("é"), quoted("\x1b[2J")
    ('7', '"a b"', '""', 'é', '"\\u001b[2J"')
    """
    text = str(value)
    if text.isprintable():  # as nothing is that moves a cursor, or ends a line for somebody
        return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
    return json.dumps(text)
