"""No test leaves anything to the next: environment, working directory, threads.

The environment and the directory are compared after every test; threads after all tests of a
file, because servers that the tests of a file share start some when they are first asked. Threads
that are about to end get a moment to. Threads that a fixture of the session starts are the
session's. What else may stay is listed here, each with its reason.

Tests: tests/test_leaks.py.
"""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import pytest

from reclock import java

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    Allowed = Mapping[str, Callable[[str | None], bool]]


def _is_bundled_java(value: str | None) -> bool:
    """Return whether that is the bundled Java, which Spark is told where there is no other."""
    made = java._launcher_home
    return made.cache_info().currsize > 0 and value == str(made())


VARIABLES: Final[Allowed] = {
    "PYTEST_CURRENT_TEST": lambda _: True,  # pytest's own, another for every step
    "_RJEM_MALLOC_CONF": lambda _: True,  # of polars, which is imported when it is first needed
}
"""Variables that may change, to which values."""
SPARK_VARIABLES: Final[Allowed] = {
    "JAVA_HOME": _is_bundled_java,
    "SPARK_AUTH_SOCKET_TIMEOUT": lambda value: value is not None,  # pyspark's, for the session
    "SPARK_BUFFER_SIZE": lambda value: value is not None,  # pyspark's, for the session
}
THREADS: Final = {
    r"reclock-subscribe": "of a database that a test lets crash: nobody closes it",
    r"Thread-\d+ \(serve_forever\)": "pyspark's, of an answer that it gives row by row",
    r"reclock-read_\d+": "of the process: they wait for requests to a store that is far away",
}
"""The names of threads that may stay."""
MOMENT: Final = 20.0

_session: WeakSet[threading.Thread] = WeakSet()


class Surroundings:
    """The environment and the directory, as they were when this was made."""

    def __init__(self) -> None:
        self._variables = dict(os.environ)
        self._directory = Path.cwd()

    def changes(self, allowed: Allowed) -> list[str]:
        """Return what has changed since, a line each, but for what is ``allowed``."""
        was, is_now = self._variables, dict(os.environ)
        found = [
            f"variable {name} was {was.get(name)!r}, is {is_now.get(name)!r}"
            for name in sorted(was.keys() | is_now.keys())
            if was.get(name) != is_now.get(name)
            if name not in allowed or not allowed[name](is_now.get(name))
        ]
        if Path.cwd() != self._directory:
            found.append(f"the working directory was {self._directory}, is {Path.cwd()}")
        return found


class Threads:
    """The threads that have been started since this was made, and by which test."""

    def __init__(self) -> None:
        self._known = dict.fromkeys(threading.enumerate(), "")

    def note(self, test: str) -> None:
        """Remember that threads which are new were started in ``test``."""
        for thread in threading.enumerate():
            self._known.setdefault(thread, test)

    def belong_to_the_session(self) -> None:
        """Let the threads that are new run on: the session ends them."""
        _session.update(set(threading.enumerate()) - self._known.keys())

    def left(self, moment: float = MOMENT) -> list[str]:
        """Return the threads that run still, a line each, after a moment to end.

        A test of a crash lets go of a database as it is: its pools end when they are collected.
        """
        self.note("a fixture that tests share")
        if self._running():
            gc.collect()
        deadline = time.monotonic() + moment
        while (found := self._running()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return [f"thread {one.name!r} runs still, started in {self._known[one]}" for one in found]

    def _running(self) -> list[threading.Thread]:
        return [
            thread
            for thread, test in self._known.items()
            if test and thread.is_alive() and thread not in _session
            if not any(re.fullmatch(name, thread.name) for name in THREADS)
        ]


class SessionFixtures:
    """A plugin: what a fixture of the session starts runs on, whichever test asks for it first.

    No hook of a conftest, which pytest would not ask about fixtures of the session.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        threads = Threads()
        try:
            return (yield)
        finally:
            if fixturedef.scope == "session":
                threads.belong_to_the_session()
