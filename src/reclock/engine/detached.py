"""Work of a statement in a thread of its own, so that the statement can be left at once.

A statement that is cancelled, or interrupted by Ctrl-C, ends at once. Its work may be in the middle
of a Spark job, or of a sort, and notices the request only at its next check, so it is left behind.
Its result is dropped. The work must change nothing that others see, and may fail in any way,
because its inputs are no longer kept.

Cost: a thread. Tests: tests/engine/test_detached.py, test_prepare_busy.py,
tests/spark/test_left.py.
"""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.dataflow.stop import Stop

T = TypeVar("T")

_MOMENT: Final = 0.1
"""Seconds. A signal that another thread is woken by does not end a wait without an end."""


def apart(interrupt: Stop, work: Callable[[Interrupt], T]) -> T:
    """Return what ``work`` returns or raise what it raises; or what ``interrupt`` says, at once."""
    made: list[T] = []
    raised: list[BaseException] = []
    over, told = threading.Event(), Interrupt()

    def run() -> None:
        try:
            made.append(work(told))
        except BaseException as error:  # the statement raises it
            raised.append(error)
        finally:
            over.set()

    name = f"{threading.current_thread().name}-apart"
    thread = threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True)
    try:
        thread.start()
        with interrupt.waking(over.set):
            while not over.wait(_MOMENT):
                pass  # Ctrl-C may have come to another thread: Python tells it here
        if not made and not raised:
            interrupt.check()
    except BaseException:
        told.set(Interrupted("the statement was left", hint="run it again"))
        raise
    if raised:
        raise raised[0]
    return made[0]
