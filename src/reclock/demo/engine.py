"""The engine of the demonstration: a process of its own, which can be killed and started again.

What it prints goes to a file; ``lines`` are the lines of the process that runs now. A kill is
SIGKILL: nothing is flushed, closed or said good-bye to. Its Spark is killed with it: both are
one process group.

Tests: tests/demo/test_demo.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PATIENCE: Final = 30.0


class Engine:
    """A command that is started, killed and started again."""

    def __init__(self, command: Sequence[str], log: Path, settings: Mapping[str, str]) -> None:
        self.kills = 0
        self.starts = 0
        self._command = list(command)
        self._settings = dict(settings)
        self._log = log
        self._begin = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        self.starts += 1
        self._begin = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, **self._settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def lines(self) -> list[str]:
        """What the process that runs now has printed."""
        with self._log.open("rb") as log:
            log.seek(self._begin)
            return log.read().decode(errors="replace").splitlines()

    @property
    def exited(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        """Kill it, with everything it has started."""
        self.kills += 1
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Have it end cleanly, or kill it."""
        if self._process is None or self.exited:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        """Send a signal to the whole group, and wait until all its processes have ended."""
        assert self._process is not None
        deadline = time.monotonic() + _PATIENCE
        try:
            while time.monotonic() < deadline:
                os.killpg(self._process.pid, number)
                self._process.wait(_PATIENCE)
                time.sleep(0.02)
        except (ProcessLookupError, PermissionError):
            return
