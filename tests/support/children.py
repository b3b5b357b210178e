"""Processes for tests to kill, which are there at once.

A ``Child`` runs a program in a process of its own, forked from one that has loaded the database
and runs nothing: that saves the two seconds of its start. The program's global ``pipe`` is a
connection to the test, whose end ends the child, too, as soon as it reads again. What a child
does, and how it dies, is not different from any other process: its memory, files, locks and
threads are its own.

Checked by tests/testing/test_children.py.
"""

from __future__ import annotations

import multiprocessing
from typing import Any, Final

PATIENCE_SECONDS: Final = 60.0
_LOADED: Final = ["reclock.session.database", "engines.model_engine"]
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(_LOADED)


class Child:
    """A process that runs ``program`` with some names known to it."""

    def __init__(self, program: str, **names: Any) -> None:
        self.pipe, theirs = _processes.Pipe()
        code = {"__name__": "__main__", "pipe": theirs, **names}
        self._process = _processes.Process(target=exec, args=(program, code), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The process as the operating system names it."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def said(self) -> list[Any]:
        """Return everything that it sends until it ends."""
        found = []
        while True:
            try:
                found.append(self.pipe.recv())
            except (EOFError, ConnectionResetError):
                return found

    def kill(self) -> int:
        """Kill it, at once, whatever it does; return its status."""
        self._process.kill()
        return self.ended()

    def ended(self) -> int:
        """Wait for its end and return its status, which is negative for a signal."""
        self._process.join(PATIENCE_SECONDS)
        code = self._process.exitcode
        if code is None:
            message = f"process {self.pid} did not end"
            raise TimeoutError(message)
        self.pipe.close()
        self._process.close()
        return code
