"""What a command that keeps running says: words for people, ``key=value`` lines for programs.

On a terminal a line is what happened, in words. Elsewhere it is one line of ``key=value`` pairs,
with the time and the event first, as log collectors read them; values with blanks, quotes or
line ends are quoted as JSON does. Tests: tests/cli/test_log.py.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

    from reclock.clock import Clock

_PLAIN: Final = re.compile(r"[^\s\"'=]+")


class Log:
    """Says what happens, on a terminal or to a file."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self.console = console
        self._clock = clock

    def say(self, event: str, words: str, **facts: object) -> None:
        """Say that something has happened: in words, or as an event with its facts."""
        line = words if self.console.is_terminal else self._line(event, facts)
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _line(self, event: str, facts: dict[str, object]) -> str:
        at = datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC)
        known = {"time": at.isoformat(timespec="milliseconds"), "event": event, **facts}
        return " ".join(f"{k}={quoted(v)}" for k, v in known.items() if v is not None)


def quoted(value: object) -> str:
    r"""Return a value as it stands in a line.

    >>> quoted(7), quoted("a b"), quoted(""), quoted("é"), quoted("\x1b[2J")
    ('7', '"a b"', '""', 'é', '"\\u001b[2J"')
    """
    text = str(value)
    if text.isprintable():  # as nothing is that moves a cursor, or ends a line for somebody
        return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
    return json.dumps(text)
