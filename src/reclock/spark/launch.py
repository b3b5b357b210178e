"""A Spark context for this process: with the user's settings, and ours where the user has none.

Settings, the first that says something counts: what the database was opened with (``Wanted``), what
``spark-submit`` was called with, Spark's own files (``spark-defaults.conf``), ours. So a script
under ``spark-submit`` gets the context that it was submitted for. The settings that a database is
opened with are in force when the JVM is launched, as some must be; they go there in a file
that only this user can read, not on a command line.

Spark is silent, unless ``spark-submit`` launched it: it has no pages (``spark.ui.enabled``), and
what it and its workers write goes to a file of ``scratch``. A JVM that this process launched
outlives its contexts; what it was launched with is not taken for the next context's settings.
One that was killed is forgotten, and the next context gets another (``forget_dead``).

Ctrl-C stays what it is in this process: by Spark's own handler it would cancel all jobs, those of
ticks too, not only those of the statement that is left.

Executors that are processes of this machine run the Python that runs here, unless
``spark.pyspark.python`` or ``PYSPARK_PYTHON`` says which.

Tests: tests/spark/test_session.py, test_given_session.py, test_launch.py.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import SparkError
from reclock.java import provide_java, spark_options
from reclock.spark.class_archive import ClassArchive
from reclock.spark.master import DEFAULT, is_here, is_loopback, is_own
from reclock.spark.pool import fairly
from reclock.spark.properties import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MASTER: Final = "spark.master"
PYTHON: Final = "spark.pyspark.python"
_NAME: Final = "spark.app.name"
_CONTEXT: Final = {
    _NAME: "reclock",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.python.unix.domain.socket.enabled": "true",
    # A task that has no memory left fails, as any other task does. Else its JVM would end, which
    # without executors is the one that all queries and all ticks need.
    "spark.executor.killOnFatalError.depth": "0",
}
_SILENT: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_ROOM: Final = "-Xss8m"
"""For calls of the JVM's threads: Spark calls itself for each level of a plan or expression."""

_PATIENT: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""What is compiled to the best code ran ten times as often as usual: ticks are jobs of few rows for
the JVM, and for minutes Java spent more on compiling what plans and schedules them than on that."""

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_MEMORY: Final = "SPARK_DRIVER_MEMORY"
_GIBIBYTE: Final = 1 << 30
_MOMENT: Final = 5.0
"""So many seconds a JVM that does not answer has to end."""


@dataclass(frozen=True)
class Wanted:
    """What Spark a user wants: a session that there is, or a master and settings."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    given: SparkSession | None = None

    @property
    def settings(self) -> dict[str, str]:
        """What it says, by the names of Spark's settings."""
        return {**self.conf, **({} if self.master is None else {MASTER: self.master})}


class Launcher:
    """Starts contexts, one after the other, in one JVM."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._archive: ClassArchive | None = None
        self._launched: frozenset[str] = frozenset()

    def start(self, wanted: Wanted) -> SparkContext:
        """Return a new context; there must be none."""
        from pyspark import SparkContext  # noqa: PLC0415 - half a second that many never need

        says = wanted.settings
        provide_java()
        log = self._scratch / "spark.log"
        gateway = None
        try:
            gateway = SparkContext._gateway or self._launch(says, log)  # noqa: SLF001 - no public way
            settings = self._settings(says, gateway)
            with _own_ctrl_c():
                context = SparkContext(conf=_conf(settings, gateway), gateway=gateway)
            if PYTHON in settings:
                context.pythonExec = settings[PYTHON]
            elif is_own(settings[MASTER]) or (
                is_here(settings[MASTER]) and "PYSPARK_PYTHON" not in os.environ
            ):
                context.pythonExec = sys.executable  # the Python that has what this one has
        except Exception as cause:
            process = getattr(gateway, "proc", None)  # None, if somebody else launched it
            if self._archive is not None and process is not None and process.poll() is not None:
                self._archive.failed()
            said = log.read_text(errors="replace")[-2000:].strip() if log.exists() else ""
            message = f"Spark could not be started with master {says.get(MASTER, DEFAULT)}"
            raise SparkError(message, detail=said or str(cause)) from cause
        return context

    def _settings(self, says: Mapping[str, str], gateway: Any) -> dict[str, str]:
        """Return all settings of a context."""
        from pyspark import SparkConf  # noqa: PLC0415

        found = dict(SparkConf(_jvm=gateway.jvm).getAll())
        if found.get(_NAME) == "pyspark-shell":
            del found[_NAME]  # of a JVM without a program
        known = {name: value for name, value in found.items() if name not in self._launched}
        known |= says
        master = known.setdefault(MASTER, DEFAULT)
        silent = {} if _SUBMITTED in os.environ else _SILENT
        pools = fairly(self._scratch) if "spark.scheduler.mode" not in known else {}
        places = _of_machine(master, self._scratch, python=PYTHON in known)
        return {**_CONTEXT, **silent, **pools, **places, **known}

    def _launch(self, says: Mapping[str, str], log: Path) -> Any:
        """Return a JVM; without the archive of classes, if it does not start with it."""
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

        def launch() -> Any:
            streams = {"stdout": stream, "stderr": stream}
            return launch_gateway(None, streams)  # type: ignore[no-untyped-call]

        if _SUBMITTED in os.environ:
            return launch_gateway()  # type: ignore[no-untyped-call]
        self._launched = frozenset(says)
        archive = ClassArchive(self._scratch)
        with (
            log.open("wb") as stream,
            _submitting(says, self._scratch),
            spark_options([_ROOM, *_PATIENT]),
        ):
            try:
                with archive.offered():
                    gateway = launch()
            except Exception:
                gateway = launch()
                archive.failed()
            else:
                archive.started(gateway)
                self._archive = archive
        return gateway


@contextmanager
def _own_ctrl_c() -> Iterator[None]:
    """Have the block change nothing about what SIGINT does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # nothing there may
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:  # one that was not set by Python cannot be
            signal.signal(signal.SIGINT, before)


def forget_dead() -> bool:
    """Forget the JVM of this process if it has ended; return whether it has.

    Python keeps what belonged to it, and would never launch another one.
    """
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession, SQLContext  # noqa: PLC0415

    gateway: Any = SparkContext._gateway  # noqa: SLF001 - no public way, here and below
    process = getattr(gateway, "proc", None)
    if process is None:
        return False  # none, or one that spark-submit launched, and that ends with it
    try:
        gateway.jvm.System.currentTimeMillis()
    except Exception:  # of Py4J, of several kinds
        with suppress(subprocess.TimeoutExpired):
            process.wait(_MOMENT)
    if process.poll() is None:
        return False
    with suppress(Exception):
        gateway.shutdown()
    known = SparkContext._active_spark_context  # noqa: SLF001
    if known is not None:
        known._jsc = None  # noqa: SLF001 - there is nothing left to stop there
        known.stop()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    SQLContext._instantiatedContext = None  # noqa: SLF001
    return True


@contextmanager
def _submitting(says: Mapping[str, str], scratch: Path) -> Iterator[None]:
    """Have a JVM that is launched in this block know settings, and have enough memory."""
    before = {name: os.environ.get(name) for name in (_ARGUMENTS, _MEMORY)}
    os.environ.setdefault(_MEMORY, f"{_driver_memory() >> 20}m")
    if says:
        file = scratch / "settings.conf"
        file.touch(0o600)
        file.write_text(written(says), encoding="utf-8")
        given = ["--load-spark-defaults", "--properties-file", str(file)]
        rest = before[_ARGUMENTS] or "pyspark-shell"
        os.environ[_ARGUMENTS] = f"{shlex.join(given)} {rest}"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _conf(settings: Mapping[str, str], gateway: Any) -> Any:
    """Return settings as an object of the JVM: nothing is added to those."""
    from pyspark import SparkConf  # noqa: PLC0415

    conf = SparkConf(loadDefaults=False, _jvm=gateway.jvm)
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def _of_machine(master: str, scratch: Path, *, python: bool) -> dict[str, str]:
    """Return settings for where a master is; ``python``: whether the user names one."""
    made = {"spark.sql.warehouse.dir": str(scratch / "warehouse")}
    if master.startswith("local") or is_loopback(master):
        made |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if is_here(master):
        # It goes to memory and comes from there: to compress Arrow's bytes takes longer.
        made |= {"spark.shuffle.compress": "false", "spark.shuffle.checksum.enabled": "false"}
    if master.startswith("local"):
        made["spark.local.dir"] = str(scratch)
        if not python:
            made["spark.python.daemon.module"] = "reclock.spark.daemon"
    return made


def _driver_memory() -> int:
    """Return an eighth of the machine's memory, from one to four GiB."""
    with suppress(ValueError, OSError):
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min(max(whole // 8, _GIBIBYTE), 4 * _GIBIBYTE)
    return _GIBIBYTE
