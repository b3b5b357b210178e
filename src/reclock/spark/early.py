"""Spark before it is needed: a state whose ticks needed it starts it as soon as it is opened.

Nothing at an opening takes as long as the start of Spark, and the first tick with changes would
wait for all of it. So a mark is left in the state directory when a tick first needs Spark, and a
process that opens a marked state to keep it running begins the start in a thread, before it loads
or reads anything else. The mark is a hint: without it Spark starts when it is needed, with it in
vain at worst, which removes the mark: the views that needed it may be gone. A start that fails is
reported to the first user.

Closing does not wait for a start under way: who has closed in between gives Spark back at once.

Tests: tests/spark/test_early.py; measured by ``python -m benchmarks sink_restart``.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os

    from reclock.spark.session import Spark

MARK: Final = "spark-needed"
"""An empty file of a state directory whose ticks have needed Spark."""


class EarlySpark:
    """The Spark of a state directory, and whether to start it early."""

    def __init__(self, path: str | os.PathLike[str], spark: Spark) -> None:
        self._mark = Path(path) / MARK
        self.spark: Final = spark
        self._closed = self._needed = self._started = False

    def begin(self) -> None:
        """Start Spark in the background, if the ticks of this state needed it before."""
        if self._mark.exists():
            Thread(target=self._start, name="reclock-early-spark", daemon=True).start()

    def needed(self) -> None:
        """Note that a tick needs Spark."""
        self._needed = True
        with suppress(OSError):
            self._mark.touch()

    def close(self) -> None:
        """Give Spark back, also if it has not started yet."""
        self._closed = True
        if self._started and not self._needed:
            with suppress(OSError):
                self._mark.unlink()
        self.spark.close()

    def _start(self) -> None:
        with suppress(Exception):  # who needs Spark finds out, and says so
            _ = self.spark.session
            self._started = True
        if self._closed:
            self.spark.close()
