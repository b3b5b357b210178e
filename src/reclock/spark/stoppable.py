"""Spark jobs that can be asked to stop.

What runs inside of ``stoppable`` has a tag of its own, so that its jobs, and no others, are
cancelled when an end is asked for (``Stop``). Spark cancels the jobs there are, not those that are
about to begin, so it is told again until the block has ended. What the block then raises is the
reason that was given, not Spark's way of saying so.

Tests: tests/dataflow/test_stop.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

    from reclock.dataflow.stop import Stop

_AGAIN: Final = 0.1
"""So many seconds after jobs were cancelled, those that have begun since are."""

_numbers: Final = count()


def is_stopped(context: SparkContext) -> bool:
    """Return whether a context was stopped, by Python or by its JVM, or its JVM is gone."""
    java: Any = context._jsc  # noqa: SLF001 - no public way to see that someone stopped it
    try:
        return java is None or bool(java.sc().isStopped())
    except Exception:  # of Py4J, of several kinds
        return True


def new_tag() -> str:
    """Return a tag that no job has."""
    return f"reclock-{next(_numbers)}"


@contextmanager
def stoppable(context: SparkContext, stop: Stop | None, tag: str | None = None) -> Iterator[None]:
    """Cancel the jobs of the block, which this thread runs, if ``stop`` asks for an end.

    ``tag`` is for jobs that another block began, and this one waits for.
    """
    if stop is None:
        yield
        return
    tag = tag or new_tag()
    over = threading.Event()

    def cancel() -> None:
        while not over.is_set() and not is_stopped(context):
            context.cancelJobsWithTag(tag)
            over.wait(_AGAIN)

    def wake() -> None:
        threading.Thread(target=cancel, name="reclock-cancel", daemon=True).start()

    context.addJobTag(tag)
    try:
        with stop.waking(wake):
            yield
    except Exception:
        stop.check()
        raise
    finally:
        over.set()
        if not is_stopped(context):
            context.removeJobTag(tag)
