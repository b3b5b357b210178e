"""Spark in this process: one context, started when first needed, stopped with its last user.

``Spark`` is a user's handle; making one costs nothing. ``session`` is for jobs over few
rows, of which there are many: one task without shuffles or broadcasts, no code generation
(compiling costs a new query two to five times what running it does), no adaptive planning.
``bulk`` is for jobs over whole collections, with all of that; ``jobs`` for ticks and loads
(``dataflow.job``), whose partitions are parts. All compute in ANSI mode
and in UTC, on which the text of every expression relies (``sql.plan.spark_text``).

A Spark that the process already runs, or a session that the user gives, is used through sessions of
our own: nothing is configured beyond these, and it is never stopped. If the user stops it,
``is_up`` is false, and its users get a ``SparkError``. Where a master runs tasks, how many at once,
and whether our package must travel (``shipping``), is asked of the context that runs, not of what
was asked for. What is asked for and is not what runs is ``SparkError``.

Before the first job on executors that are not this process's own, what tasks need is looked for
there (``preflight``); until that is found, Spark is not up.

Tests: tests/spark/test_session.py.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import RLock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.errors import InvalidValue, SparkError
from reclock.spark.launch import MASTER, Launcher, Wanted, forget_dead
from reclock.spark.master import is_connect, is_own, own_cores
from reclock.spark.notice import say
from reclock.spark.preflight import Preflight
from reclock.spark.shipping import ship
from reclock.spark.stoppable import is_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from reclock.arrangement.store import Store

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


class Sessions(NamedTuple):
    """The sessions of one context."""

    small: SparkSession
    bulk: SparkSession
    jobs: SparkSession

    @property
    def context(self) -> SparkContext:
        """Their context."""
        return self.small.sparkContext

    def resize(self) -> None:
        """Have as many partitions as tasks run at once."""
        cores = self.context.defaultParallelism
        self.bulk.conf.set("spark.sql.shuffle.partitions", str(2 * cores))
        self.jobs.conf.set("spark.sql.shuffle.partitions", str(cores))


class Spark:
    """A user of this process's Spark.

    ``master`` is any Spark master; by default what Spark's own settings say, else this machine with
    all its cores. ``conf`` are settings of Spark. Instead of both, ``given`` is a session to use.
    """

    def __init__(
        self,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        given: SparkSession | None = None,
    ) -> None:
        if given is not None and (master is not None or conf):
            message = "a session of Spark has a master and settings"
            raise InvalidValue(message, hint="give either spark=, or master= and conf=")
        self._wanted = Wanted(master, dict(conf or {}), given)
        client = given is not None and not hasattr(given, "_jsparkSession")
        if client or is_connect(self._wanted.settings.get(MASTER, "")):
            raise _no_connect()
        self._preflight = Preflight()
        self._shown: tuple[SparkContext, str | None] | None = None
        """Where a context shows what it does."""
        self.store: Store | None = None
        """Where tasks read and write files."""

    @property
    def session(self) -> SparkSession:
        """The session for jobs over few rows."""
        return self._sessions().small

    @property
    def bulk(self) -> SparkSession:
        """The session for jobs over whole collections."""
        return self._sessions().bulk

    @property
    def jobs(self) -> SparkSession:
        """The session for jobs of many stages whose plans are used again (``job``)."""
        return self._sessions().jobs

    @property
    def is_up(self) -> bool:
        """Whether using it waits for nothing."""
        context = _shared.running(self._wanted)
        return context is not None and (_is_ours(context) or self._preflight.passed(context))

    def begin(self) -> None:
        """Start Spark in the background, if it is not up; who uses it finds out what goes wrong."""
        if not self.is_up:
            _shared.begin(lambda: self.session)

    def reach(self, name: str, visit: Callable[[], object]) -> None:
        """Raise unless ``visit`` succeeds on every executor, once for each name."""
        found = self._sessions()
        if not _is_ours(found.context):
            self._preflight.require(found.context, self.store, {name: visit})

    @property
    def ui(self) -> str | None:
        """Where Spark shows what it does; None if it is not up, or shows nothing."""
        context = _shared.running(self._wanted)
        if context is None:
            return None
        if self._shown is None or self._shown[0] is not context:  # the JVM is asked once
            shows = context.getConf().get("spark.ui.enabled", "true") != "false"
            self._shown = context, context.uiWebUrl if shows else None
        return self._shown[1]

    @property
    def own_cores(self) -> int | None:
        """How many cores there are to use, if they are this process's; else None."""
        context = _shared.running(self._wanted)
        master = self._wanted.settings.get(MASTER) if context is None else str(context.master)
        return own_cores(master or "local[*]")

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

    def _sessions(self) -> Sessions:
        found = _shared.sessions(self, self._wanted)
        if not _is_ours(found.context) and self._preflight.require(found.context, self.store, {}):
            found.resize()  # executors have come
        return found


class _Shared:
    """The Spark of this process and who uses it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._users: set[Spark] = set()
        self._sessions: Sessions | None = None
        self._scratch: Path | None = None
        self._launcher: Launcher | None = None
        self.started: SparkContext | None = None
        """The context that was started here, if one was."""
        self._starting: Thread | None = None

    def sessions(self, user: Spark, wanted: Wanted) -> Sessions:
        """Return all sessions, which are started if there are none, and note their user."""
        with self._lock:
            if wanted.given is not None and is_stopped(wanted.given.sparkContext):
                message = "the Spark session that the database was opened with is stopped"
                hint = "open the database again, with a session that runs"
                raise SparkError(message, code="08003", hint=hint)
            if self._sessions is None or is_stopped(self._sessions.context):
                self._sessions = self._start(wanted)
            _check(self._sessions.context, wanted)
            self._users.add(user)
            return self._sessions

    def running(self, wanted: Wanted) -> SparkContext | None:
        """Return the context that runs, of the session that was given if one was."""
        found = self._sessions
        if wanted.given is not None and is_stopped(wanted.given.sparkContext):
            return None
        return None if found is None or is_stopped(found.context) else found.context

    def begin(self, start: Callable[[], object]) -> None:
        """Start in a thread, once; who uses the sessions finds out what goes wrong."""

        def run() -> None:
            with suppress(Exception):
                start()

        if self._starting is None or not self._starting.is_alive():
            self._starting = Thread(target=run, name="reclock-spark", daemon=True)
            self._starting.start()

    def leave(self, user: Spark) -> None:
        """Forget a user; stop what was started here when there are none left."""
        if user not in self._users:
            return  # without waiting for a start under way
        with self._lock:
            self._users.discard(user)
            if self._users or self._sessions is None:
                return
            if self.started is not None:
                if not forget_dead():
                    self._sessions.small.stop()
                self.started = None
            self._sessions = None

    def _start(self, wanted: Wanted) -> Sessions:
        from pyspark import SparkContext  # noqa: PLC0415 - half a second that many never need
        from pyspark.sql import SparkSession  # noqa: PLC0415

        forget_dead()
        # There is no public way to ask whether a context runs without starting one.
        active = SparkContext._active_spark_context  # noqa: SLF001
        if active is not None and is_stopped(active):
            active.stop()  # its JVM has, or its master: Python does not know yet
            active = None
        if wanted.given is not None:
            small = wanted.given.newSession()
        elif active is None:
            say(_log, "starting Spark …")
            if self._launcher is None:
                self._launcher = Launcher(self.scratch())
            self.started = self._launcher.start(wanted)
            small = SparkSession.builder.getOrCreate()
        else:
            small = SparkSession.builder.getOrCreate().newSession()
        found = Sessions(small, small.newSession(), small.newSession())
        for session, settings in zip(found, (_SMALL, _BULK, _JOBS), strict=True):
            for name, value in (_SESSION | settings).items():
                session.conf.set(name, value)
        found.resize()
        if not is_own(str(found.context.master)):
            ship(found.context, self.scratch())
        return found

    def scratch(self) -> Path:
        """Return the one directory of this process: its JVM remembers it between contexts."""
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="reclock-spark-"))
            atexit.register(shutil.rmtree, self._scratch, ignore_errors=True)
        return self._scratch


_shared: Final = _Shared()
_log: Final = logging.getLogger(__name__)


def _is_ours(context: SparkContext) -> bool:
    """Return whether a context was started here and its tasks run below this process."""
    return context is _shared.started and is_own(str(context.master))


def _no_connect() -> SparkError:
    """Return why nothing runs through a Spark Connect server."""
    message = "reclock does not run on Spark Connect"
    detail = (
        "what a job is about reaches its tasks as a local property of the SparkContext,"
        " which a Connect client has not"
    )
    hint = "use the cluster's own master: spark://…, yarn, k8s://…, or a classic SparkSession"
    return SparkError(message, code="0A000", detail=detail, hint=hint)


def _check(context: SparkContext, wanted: Wanted) -> None:
    """Raise unless a context that runs is what is wanted."""
    conf = context._conf  # noqa: SLF001 - ``getConf`` adds what the JVM was launched with
    for name, value in wanted.settings.items():
        found = conf.get(name)
        if found != value:
            what = "master" if name == MASTER else name
            message = f"Spark already runs in this process with {what} {found}"
            raise SparkError(message, hint=f"use that {what}, or close it to use {value}")
