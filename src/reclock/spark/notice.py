"""What a person waits for, said at once: the start of Spark takes seconds.

It is an event of Python's ``logging``. Where nothing takes these events, which is the case until a
program says what shall, people would see nothing: then it is written to standard error, if that is
a terminal or a notebook. Programs whose standard error goes to a file or a pipe are left alone.

Tests: tests/spark/test_notice.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from typing import TextIO


def say(log: logging.Logger, words: str) -> None:
    """Say what is waited for."""
    log.info(words)
    out = sys.stderr
    if not log.hasHandlers() and _is_watched(out):
        print(words, file=out, flush=True)


def _is_watched(out: TextIO | None) -> bool:
    """Return whether a person sees what is written there; a program may have closed it."""
    if out is None or out.closed:
        return False
    return out.isatty() or "ipykernel" in type(out).__module__
