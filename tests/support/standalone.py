"""A standalone Spark cluster for tests: a master and one-core workers, as processes on loopback.

The jars are pyspark's own. Every worker has directories of its own (``work``, ``local``), as it
would on a machine of its own: with the driver it shares the network and what a test puts on a file
system. Neither the package nor the environment of the tests is on it (no ``PYTHONPATH``, and
``python3`` of an executor is whatever PATH says), unless a test gives them with ``env``. ::

    with standalone_cluster(tmp_path) as cluster:
        db = reclock.open(path, master=cluster.master_url)
        cluster.executors(0)       # the process ids of the first worker's executors
        cluster.workers[0].kill()  # its executors end, too, as they do when a machine is lost

Checked by tests/testing/test_standalone.py.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATIENCE_SECONDS: Final = 180.0
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_LEFT_OUT: Final = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV")


@dataclass
class StandaloneCluster:
    """A master and workers; ``homes`` has one directory for each worker."""

    home: Path
    env: dict[str, str]
    master: subprocess.Popen[bytes]
    master_url: str
    ui_url: str
    cores: int = 1
    memory: str = "1g"
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    homes: list[Path] = field(default_factory=list)

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker, and wait until the master knows it."""
        home = self.home / f"worker-{len(self.workers)}"
        home.mkdir()
        env = self.env | {"SPARK_LOCAL_DIRS": str(home / "local"), "TMPDIR": str(home)}
        options = ["--cores", str(self.cores), "--memory", self.memory]
        options += ["--work-dir", str(home / "work"), "--webui-port", "0", "--host", "127.0.0.1"]
        made = _start([_WORKER, *options, self.master_url], home, env)
        self.workers.append(made)
        self.homes.append(home)
        _said(made, home / "log", r"Successfully registered with master")
        return made

    def executors(self, worker: int) -> list[int]:
        """Return the process ids of the executors that a worker runs now."""
        return _children(self.workers[worker].pid, "CoarseGrainedExecutorBackend")

    def log(self) -> str:
        """Return everything that was written, for a test that fails."""
        logs = sorted([*self.home.glob("*/log"), *self.home.glob("worker-*/work/*/*/std*")])
        return "\n".join(f"=== {log}\n{log.read_text(errors='replace')[-20000:]}" for log in logs)

    def stop(self) -> None:
        """End all processes, those of executors too."""
        for process in [*self.workers, self.master]:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)


@contextmanager
def standalone_cluster(
    home: Path,
    workers: int = 2,
    *,
    cores: int = 1,
    memory: str = "1g",
    env: Mapping[str, str] | None = None,
) -> Iterator[StandaloneCluster]:
    """Run a cluster whose files are in ``home``; ``env`` is for its processes and executors."""
    import pyspark  # noqa: PLC0415 - most tests do without

    from reclock.java import find_java  # noqa: PLC0415

    made = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    made |= {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "JAVA_HOME": str(find_java().parent.parent),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
        **(env or {}),
    }
    place = home / "master"
    place.mkdir(parents=True)
    options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = _start([_MASTER, *options], place, made)
    try:
        url = _said(master, place / "log", r"Starting Spark master at (spark://\S+)")
        pages = _said(master, place / "log", r"started at (http://\S+)")
        cluster = StandaloneCluster(home, made, master, url, pages, cores, memory)
    except BaseException:
        master.kill()
        raise
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()


def _start(command: list[str], home: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    program = str(Path(env["SPARK_HOME"]) / "bin" / "spark-class")  # it becomes the JVM
    with (home / "log").open("wb") as log:
        return subprocess.Popen(
            [program, *command], cwd=home, env=dict(env),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Return what a process says, waiting until it has."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[found.re.groups]
        time.sleep(0.05)
    message = f"{log.parent.name} did not say {pattern}:\n{log.read_text(errors='replace')}"
    raise TimeoutError(message)


def _children(process: int, word: str) -> list[int]:
    """Return the processes below one whose command has a word."""
    found = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            with suppress(FileNotFoundError):
                command = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
                found += [child] if word in command else _children(child, word)
    return found
