"""Before the first job on executors that are not our own: they have what tasks need.

One small job looks on every executor: at its Python and the packages that tasks import, whether
it reads what the driver wrote to the store and the driver sees what it writes, and whether the
brokers of sources can be reached from there (``checkup``). What is missing is one ``SparkError``
that names hosts, what is missing and what to do. What was found once is not looked for again,
neither on executors that come later: Spark runs their failed tasks elsewhere.

A job without executors would wait for ever and say nothing: after ``EXECUTOR_SECONDS`` (or
``spark.reclock.executorTimeout``) it is cancelled and becomes an error, and so is whatever needs
Spark next, if there is none by then. Small ticks run in the driver meanwhile (``placement``).

Every executor: a round has a task per core, which lingers so that none runs two; rounds are
repeated until as many executors have answered as there are, at most ``ROUNDS``.

Cost: a job of about half a second per process. Tests: tests/spark/test_preflight.py.
"""

from __future__ import annotations

import importlib
import pickle
import re
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from reclock.errors import SparkError
from reclock.spark import checkup
from reclock.spark.pool import Pool, titled
from reclock.spark.stoppable import is_stopped, new_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark import SparkContext

    from reclock.arrangement.store import Store
    from reclock.spark.checkup import Found

    Visits = Mapping[str, Callable[[], object]]

PACKAGES: Final = {
    "pyspark": 3, "pyarrow": 3, "polars": 3, "numpy": 1, "pandas": 1,
    "confluent_kafka": 1, "fastavro": 1, "reclock": 3,
}  # fmt: skip
"""What tasks import, and how many numbers of a version must be the driver's: what decides about
values or files is the same on every machine."""

EXECUTOR_SECONDS: Final = 30.0
TIMEOUT: Final = "spark.reclock.executorTimeout"
ROUNDS: Final = 5
_LINGER: Final = 0.3
_PAUSE: Final = 0.2
_PACK: Final = (
    "install the same there, or take this environment along: reclock pack environment.tar.gz,"
    " then --conf spark.archives=environment.tar.gz#environment"
    " --conf spark.pyspark.python=./environment/bin/python"
)
_HINTS: Final = {
    "python": f"let spark.pyspark.python name the same Python on the executors, or {_PACK}",
    "package": _PACK,
    "store": "use --store with a directory that all machines mount, or with s3://bucket/prefix",
    "reach": "see that the executors' machines reach the brokers, by the names that brokers have",
}
_HOST: Final = re.compile(r"\(TID \d+\) \((\S+) executor")
_MISMATCH: Final = re.compile(r"different version: (\S+) than that in driver:? (\d[\d.]*\d)")
_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_SAID: Final = re.compile(r"(?:Error from python worker:\s*|SparkException: )([^\n]+)")


class Preflight:
    """What has been looked for on the executors of a context; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._application: str | None = None
        self._passed: frozenset[str] = frozenset()

    def passed(self, context: SparkContext) -> bool:
        """Return whether the executors of a context can run tasks."""
        return self._application == context.applicationId

    def require(self, context: SparkContext, store: Store | None, visits: Visits) -> bool:
        """Raise unless everything is there; return whether it had to be looked for."""
        wanted = {"", *(f"reach {name}" for name in visits), *(() if store is None else ("store",))}
        with self._lock:
            if self._application != context.applicationId:
                self._passed = frozenset()
            if wanted <= self._passed:
                return False
            rest = {name: v for name, v in visits.items() if f"reach {name}" not in self._passed}
            check(context, None if "store" in self._passed else store, rest)
            self._passed |= wanted
            self._application = context.applicationId
            return True


def check(context: SparkContext, store: Store | None, visits: Visits) -> None:
    """Look on every executor, and raise what is missing."""
    versions = {
        name: (checkup.version_of(importlib.import_module(name)), numbers)
        for name, numbers in PACKAGES.items()
    }
    reached = pickle.dumps(list(visits.items())) if visits else None
    while True:
        probe = None if store is None else _Probe(store)
        try:
            sent = None if probe is None else probe.sent()
            found = _rounds(context, checkup.examination(versions, sent, reached, _LINGER))
            lost, whole = (set[str](), True) if probe is None else probe.lost(found)
        finally:
            if probe is not None:
                probe.remove()
        if whole:
            break
    faults = defaultdict[tuple[str, str], set[str]](set)
    for one in found:
        for kind, text in one["wrong"]:
            faults[kind, text].add(one["host"])
    if lost:
        faults["store", "what a task writes to the store is not there for the driver"] |= lost
    if faults:
        raise _missing(faults)


class _Probe:
    """A file of the driver's in the store, and those that tasks write when they have read it.

    Nothing names them: they are garbage, and may be collected meanwhile. Then it is no test.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._name = f"probe-{uuid4().hex}"

    def sent(self) -> bytes:
        path = self._store.scratch(self._name)
        path.write_bytes(self._name.encode())
        self._store.publish(path, self._name, durable=False)
        return pickle.dumps((self._store, self._name))

    def lost(self, found: Iterable[Found]) -> tuple[set[str], bool]:
        """Return the hosts whose files are not there, and whether the driver's own still is."""
        there = set(self._store.names())
        written = {one["file"]: one["host"] for one in found if one.get("file") is not None}
        return {host for file, host in written.items() if file not in there}, self._name in there

    def remove(self) -> None:
        for name in self._store.names():
            if self._name in name:
                self._store.remove(name)


def _missing(faults: Mapping[tuple[str, str], set[str]]) -> SparkError:
    """Return one error for all that is missing."""
    detail = "; ".join(
        f"{', '.join(sorted(hosts))}: {text}" for (_, text), hosts in sorted(faults.items())
    )
    kinds = dict.fromkeys(kind for kind, _ in sorted(faults))
    hint = "; ".join(_HINTS[kind] for kind in kinds)
    return SparkError("the executors lack what tasks need", detail=detail, hint=hint)


def _rounds(context: SparkContext, examine: Callable[[Iterable[int]], Any]) -> list[Found]:
    """Return what tasks find on every executor, as far as they can be had."""
    found: dict[tuple[str, int], Found] = {}
    answers: list[Found] = []
    for _ in range(ROUNDS):
        for one in _round(context, examine):
            found[one["host"], one["process"]] = one
            answers.append(one)
        if len(found) >= executors(context):
            break
    return answers


def _round(context: SparkContext, examine: Callable[[Iterable[int]], Any]) -> list[Found]:
    from pyspark import cloudpickle  # noqa: PLC0415 - half a second that many never need

    tasks = max(1, context.defaultParallelism)
    numbers = context.parallelize(range(tasks), tasks)
    with _starving(context) as starved, titled(context, "preflight", Pool.TICKS):
        cloudpickle.register_pickle_by_value(checkup)  # type: ignore[no-untyped-call]
        try:
            return list(numbers.mapPartitions(examine).collect())
        except Exception as cause:
            if starved.is_set():
                raise no_executors(context) from cause
            raise explained(context, str(cause)) from cause
        finally:
            cloudpickle.unregister_pickle_by_value(checkup)  # type: ignore[no-untyped-call]


class _starving:  # noqa: N801 - a context manager
    """Cancel the jobs of the block if there are no executors for too long, and note that."""

    def __init__(self, context: SparkContext) -> None:
        self._context, self._tag = context, new_tag()
        self._over, self._starved = threading.Event(), threading.Event()
        self._watch = threading.Thread(target=self._run, name="reclock-executors", daemon=True)

    def __enter__(self) -> threading.Event:
        self._context.addJobTag(self._tag)
        self._watch.start()
        return self._starved

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        if not is_stopped(self._context):
            self._context.removeJobTag(self._tag)

    def _run(self) -> None:
        end = time.monotonic() + patience(self._context)
        while not self._over.wait(_PAUSE) and not is_stopped(self._context):
            if executors(self._context):
                return
            if time.monotonic() >= end:
                self._starved.set()
                self._context.cancelJobsWithTag(self._tag)


def patience(context: SparkContext) -> float:
    """Return for how many seconds a job may be without executors."""
    return float(context.getConf().get(TIMEOUT) or EXECUTOR_SECONDS)


def executors(context: SparkContext) -> int:
    """Return how many executors there are; a local master is one."""
    java: Any = context._jsc  # noqa: SLF001 - no public way
    if str(context.master).startswith("local["):
        return 1
    return max(0, int(java.sc().getExecutorMemoryStatus().size()) - 1)


def no_executors(context: SparkContext) -> SparkError:
    """Return the error of a master that has given no executor."""
    seconds, master = patience(context), str(context.master)
    conf = context.getConf()
    cores, memory = conf.get("spark.executor.cores", "1"), conf.get("spark.executor.memory", "1g")
    message = f"Spark has no executors after {seconds:g} seconds"
    detail = f"master {master} has given none of {cores} cores and {memory} of memory each"
    hint = (
        "see on the master's pages whether it has workers with so much free, and whether they"
        f" reach the driver at {conf.get('spark.driver.host')};"
        f" what needs no Spark job goes on; --conf {TIMEOUT}=300 waits longer"
    )
    return SparkError(message, code="53000", detail=detail, hint=hint)


def explained(context: SparkContext, text: str) -> SparkError:
    """Return the error of executors that cannot run tasks of Python at all."""
    host = found[1] if (found := _HOST.search(text)) else str(context.master)
    if versions := _MISMATCH.search(text):
        what = f"Python is {versions[1]}, the driver's is {versions[2]}"
        return _missing({("python", what): {host}})
    if program := _PROGRAM.search(text):
        return _missing({("python", f"there is no Python {program[1]}"): {host}})
    said = found[1] if (found := _SAID.search(text)) else text.strip().split("\n", 1)[0]
    return _missing({("python", f"Python does not run ({said.strip()})"): {host}})
