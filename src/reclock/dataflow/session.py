"""Spark in this process: one context, started when first needed, stopped with its last user.

``Spark`` is a user's handle; making one costs nothing. ``session`` is for jobs over few
rows, of which there are many: one task without shuffles or broadcasts, no code generation
(compiling costs a new query two to five times what running it does), no adaptive planning.
``bulk`` is for jobs over whole collections, with all of that; ``jobs`` for ticks and loads
(``dataflow.job``), whose partitions are parts. All compute in ANSI mode
and in UTC, on which the text of every expression relies (``sql.plan.spark_text``).

Spark is silent: what it and its workers write goes to a file of a temporary directory,
which also holds Spark's scratch files and is gone when the process ends. A Spark that the
process already runs is used through a session of our own, and neither configured beyond
that session nor stopped. A connection to a master that cannot be had is ``SparkError``. Its
classes come from an archive, if one is there already (``dataflow.class_archive``).

Tests: tests/dataflow/test_session.py.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, Final

from reclock.dataflow.class_archive import ClassArchive
from reclock.dataflow.pool import fairly
from reclock.dataflow.shipping import ship
from reclock.errors import SparkError
from reclock.java import provide_java, spark_options

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_CONTEXT: Final = {
    "spark.app.name": "reclock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.python.unix.domain.socket.enabled": "true",
    # A task that has no memory left fails, as any other task does. Else its JVM would end, which
    # without executors is the one that all queries and all ticks need.
    "spark.executor.killOnFatalError.depth": "0",
}
_SESSION: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.analyzer.maxIterations": "1000",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    # It takes twice as long with each level of an expression, and finds little: what is used
    # more than once is a column of its own (``sql.plan.spark_text``).
    "spark.sql.subexpressionElimination.enabled": "false",
    # So does this, of the keys of joins; what is scanned has no partitions to leave out, and no
    # statistics.
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}
_SMALL: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
_BULK: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
}
_JOBS: Final = {
    # A part is a partition: none may be joined with another, or left out.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
}
_ROOM: Final = "-Xss8m"
"""For calls of the JVM's threads: Spark calls itself for each level of a plan or expression."""

_GIBIBYTE: Final = 1 << 30
_OWN: Final = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")
"""Masters whose tasks run on this machine, below this process."""


class Spark:
    """A user of this process's Spark.

    ``master`` is any Spark master; by default this machine with all its cores.
    """

    def __init__(self, master: str | None = None) -> None:
        self._master = master or "local[*]"

    @property
    def session(self) -> SparkSession:
        """The session for jobs over few rows."""
        return _shared.sessions(self, self._master)[0]

    @property
    def bulk(self) -> SparkSession:
        """The session for jobs over whole collections."""
        return _shared.sessions(self, self._master)[1]

    @property
    def jobs(self) -> SparkSession:
        """The session for jobs of many stages whose plans are used again (``job``)."""
        return _shared.sessions(self, self._master)[2]

    @property
    def is_up(self) -> bool:
        """Whether using it waits for no start."""
        return _shared.is_up

    def begin(self) -> None:
        """Start Spark in the background, if it is not up."""
        _shared.begin(self, self._master)

    @property
    def own_cores(self) -> int | None:
        """How many cores there are to use, if they are this process's; else None.

        >>> Spark("local[3]").own_cores, Spark("local").own_cores, Spark("yarn").own_cores
        (3, 1, None)
        """
        found = _OWN.fullmatch(self._master)
        if found is None:
            return None
        return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self.session.sparkContext.defaultParallelism

    @property
    def scratch(self) -> Path:
        """A directory of this machine that goes with the process."""
        return _shared.scratch()

    def close(self) -> None:
        """Stop using Spark; the last user's close stops it. Idempotent."""
        _shared.leave(self)


class _Shared:
    """The Spark of this process and who uses it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._users: set[Spark] = set()
        self._sessions: tuple[SparkSession, SparkSession, SparkSession] | None = None
        self._scratch: Path | None = None
        self._started_here = False
        self._archive: ClassArchive | None = None
        self._starting: Thread | None = None

    def sessions(self, user: Spark, master: str) -> tuple[SparkSession, SparkSession, SparkSession]:
        """Return all sessions, which are started if nobody did, and note their user."""
        with self._lock:
            if self._sessions is None or self._sessions[0].sparkContext._jsc is None:  # noqa: SLF001 - no public way to see that someone stopped it
                self._sessions = self._start(master)
            running = str(self._sessions[0].sparkContext.master)
            if self._started_here and running != master:
                message = f"Spark already runs in this process with master {running}"
                raise SparkError(message, hint=f"use that master, or close it to use {master}")
            self._users.add(user)
            return self._sessions

    @property
    def is_up(self) -> bool:
        """Whether there are sessions."""
        found = self._sessions
        return found is not None and found[0].sparkContext._jsc is not None  # noqa: SLF001 - as below

    def begin(self, user: Spark, master: str) -> None:
        """Start in a thread, once; who uses the sessions finds out what goes wrong."""

        def start() -> None:
            with suppress(Exception):
                self.sessions(user, master)

        if not self.is_up and (self._starting is None or not self._starting.is_alive()):
            self._starting = Thread(target=start, name="reclock-spark", daemon=True)
            self._starting.start()

    def leave(self, user: Spark) -> None:
        """Forget a user; stop what was started here when there are none left."""
        if user not in self._users:
            return  # without waiting for a start under way
        with self._lock:
            self._users.discard(user)
            if self._users or self._sessions is None:
                return
            if self._started_here:
                self._sessions[0].stop()
                self._started_here = False
            self._sessions = None

    def _start(self, master: str) -> tuple[SparkSession, SparkSession, SparkSession]:
        from pyspark import SparkContext  # noqa: PLC0415 - half a second that many never need
        from pyspark.sql import SparkSession  # noqa: PLC0415

        # There is no public way to ask whether a context runs without starting one.
        if SparkContext._active_spark_context is None:  # noqa: SLF001
            self._start_context(master)
            first = SparkSession.builder.getOrCreate()
        else:
            first = SparkSession.builder.getOrCreate().newSession()
        bulk = first.newSession()
        cores = first.sparkContext.defaultParallelism
        for name, value in (_SESSION | _SMALL).items():
            first.conf.set(name, value)
        for name, value in (_SESSION | _BULK).items():
            bulk.conf.set(name, value)
        bulk.conf.set("spark.sql.shuffle.partitions", str(2 * cores))
        jobs = first.newSession()
        for name, value in (_SESSION | _JOBS).items():
            jobs.conf.set(name, value)
        jobs.conf.set("spark.sql.shuffle.partitions", str(cores))
        return first, bulk, jobs

    def _start_context(self, master: str) -> None:
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415

        provide_java()
        scratch = self.scratch()
        memory = {"spark.driver.memory": f"{_driver_memory() >> 20}m"}
        conf, launched = SparkConf(loadDefaults=False), SparkConf(loadDefaults=False)
        for name, value in (
            _CONTEXT | memory | _of_machine(master, scratch) | fairly(scratch)
        ).items():
            conf.set(name, value)
        # A JVM outlives its contexts, and what it is launched with stays for the next ones,
        # which may be the user's own.
        for name, value in (memory | {"spark.master": master}).items():
            launched.set(name, value)
        log = scratch / "spark.log"
        gateway = None
        try:
            gateway = SparkContext._gateway or self._launch(launched, log)  # noqa: SLF001
            context = SparkContext(conf=conf, gateway=gateway)
            if master.startswith("local"):
                context.pythonExec = sys.executable  # the Python that has what this one has
            if not is_own(master):
                ship(context, scratch)
        except Exception as cause:
            process = getattr(gateway, "proc", None)  # None, if somebody else launched it
            if self._archive is not None and process is not None and process.poll() is not None:
                self._archive.failed()
            said = log.read_text(errors="replace")[-2000:].strip() if log.exists() else ""
            message = f"Spark could not be started with master {master}"
            raise SparkError(message, detail=said or str(cause)) from cause
        self._started_here = True

    def _launch(self, conf: SparkConf, log: Path) -> Any:
        """Return a JVM; without the archive of classes, if it does not start with it."""
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

        def launch() -> Any:
            with log.open("wb") as stream, spark_options([_ROOM]):
                return launch_gateway(conf, {"stdout": stream, "stderr": stream})  # type: ignore[no-untyped-call]

        archive = ClassArchive(self.scratch())
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

    def scratch(self) -> Path:
        """Return the one directory of this process: its JVM remembers it between contexts."""
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="reclock-spark-"))
            atexit.register(shutil.rmtree, self._scratch, ignore_errors=True)
        return self._scratch


_shared: Final = _Shared()


def is_own(master: str) -> bool:
    """Return whether the tasks of a master run on this machine, below this process.

    >>> is_own("local[2]"), is_own("local-cluster[2,1,1024]"), is_own("spark://host:7077")
    (True, False, False)
    """
    return _OWN.fullmatch(master) is not None


def _of_machine(master: str, scratch: Path) -> dict[str, str]:
    made = {
        "spark.master": master,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if master.startswith("local"):
        made |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(scratch),
        }
    return made


def _driver_memory() -> int:
    """Return an eighth of the machine's memory, from one to four GiB."""
    with suppress(ValueError, OSError):
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min(max(whole // 8, _GIBIBYTE), 4 * _GIBIBYTE)
    return _GIBIBYTE
