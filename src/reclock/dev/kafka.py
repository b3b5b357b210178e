"""A real Apache Kafka on loopback, for development and tests.

One node in KRaft mode, reachable from this machine only, with everything in one directory::

    <directory>/data               the topics; kept until somebody removes them
    <directory>/server.properties  what the broker was started with
    <directory>/kafka.log          what it said
    <directory>/broker             "<pid> <port>" of the last start
    <directory>/lock               locked by the broker itself for as long as it lives

The broker inherits the open lock file, so the operating system knows whether it runs, and
nothing else has to be believed: a ``broker`` file that a crash left behind is recognised
by its free lock, and its pid is never signalled. Commands on one directory exclude each
other. A broker that was killed repairs its own data at the next start.

Tests: tests/dev/test_kafka.py.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import platformdirs
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from reclock.dev.jars import kafka_jars, locked
from reclock.errors import BrokerFailed
from reclock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092

_PATIENCE_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.05
_IN_BACKGROUND: Final = '"$@" >"$0" 2>&1 & echo $!'
_JAVA_OPTIONS: Final = (
    "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)  # fmt: skip
_SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A broker that was killed comes back when the controller has noticed that it was gone.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "log.retention.ms": "-1",
}


@dataclass(frozen=True, slots=True)
class Running:
    """A broker that runs: its process, its port, its directory."""

    pid: int
    port: int
    directory: Path

    @property
    def address(self) -> str:
        """The broker as clients name it, ``host:port``."""
        return f"{HOST}:{self.port}"


def default_directory() -> Path:
    """Return where a broker lives by default: the user's cache."""
    return platformdirs.user_cache_path("reclock") / "kafka"


class Broker:
    """The broker of ``directory``, whether it runs or not; ``settings`` override Kafka's."""

    def __init__(
        self, directory: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._directory = (directory or default_directory()).absolute()
        self._settings = dict(settings or {})

    def status(self) -> Running | None:
        """Return the running broker; remove what a dead one left behind."""
        state = self._directory / "broker"
        if not state.exists():
            return None
        if not self._alive():
            state.unlink(missing_ok=True)
            return None
        pid, port = state.read_text().split()
        return Running(int(pid), int(port), self._directory)

    def start(
        self,
        port: int | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> Running:
        """Start the broker and return it once it answers, or return the one that already runs.

        ``port`` 0 is any free one; ``report`` is told what takes time.
        """
        with self._alone():
            running = self.status()
            if running is not None and not self._ready(running):
                running = None  # it was dying when we looked
            if running is not None:
                if port not in (None, 0, running.port):
                    message = f"the broker of {self._directory} runs on port {running.port}"
                    hint = "stop it first, or choose another directory with --dir"
                    raise BrokerFailed(message, hint=hint)
                return running
            port = claim_port(DEFAULT_PORT if port is None else port)
            jars = kafka_jars(report)
            report("starting Apache Kafka")
            self._configure(port)
            self._format(jars)
            return self._launch(jars, port)

    def stop(self) -> Running | None:
        """Stop the broker cleanly; return what ran, or None if nothing did."""
        with self._alone():
            running = self.status()
            if running is not None:
                self._signal(running, signal.SIGTERM)
                if not _wait_until(lambda: not self._alive()):
                    self._signal(running, signal.SIGKILL)
                    _wait_until(lambda: not self._alive())
                self.status()
            return running

    def _alone(self) -> AbstractContextManager[None]:
        """Return a block in which no other command works on this directory."""
        return locked(self._directory / "commands")

    def _alive(self) -> bool:
        """Whether some broker holds the lock."""
        with (self._directory / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _signal(self, running: Running, number: int) -> None:
        """Send a signal to the broker, and not to a later process with its pid."""
        with suppress(ProcessLookupError):
            if self._alive():
                os.kill(running.pid, number)

    def _configure(self, port: int) -> None:
        """Write the broker's settings; the controller's port is internal."""
        controller = claim_port(0)
        settings = {
            **_SETTINGS,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "log.dirs": str(self._directory / "data"),
            **self._settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self._directory / "server.properties").write_text(text)

    def _format(self, jars: Path) -> None:
        """Make an empty cluster, if the data directory is new."""
        identity = self._directory / "data" / "meta.properties"
        if not identity.exists():
            new = f"--cluster-id=r{secrets.token_urlsafe(16)[1:]}"
            properties = str(self._directory / "server.properties")
            command = ["kafka.tools.StorageTool", "format", new, "--config", properties]
            with self._log().open("wb") as log:
                done = subprocess.run(
                    [*self._java(jars), *command],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False,
                )  # fmt: skip
            if done.returncode != 0:
                msg = "the broker's data directory could not be made"
                raise self._failed(msg)

    def _ready(self, running: Running) -> bool:
        """Wait until a broker that was started answers, or is dead."""
        identity = self._directory / "data" / "meta.properties"
        lines = identity.read_text().splitlines()
        ours = next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))
        _wait_until(lambda: not self._alive() or _answers(running, ours))
        return self._alive() and _answers(running, ours)

    def _launch(self, jars: Path, port: int) -> Running:
        """Start the process with the lock in its hands and wait until it answers.

        A shell starts it and ends, so the broker is no child of ours and outlives us.
        """
        lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # waits only for a glance of ``status``
            properties = str(self._directory / "server.properties")
            shell = ["/bin/sh", "-c", _IN_BACKGROUND, str(self._log())]
            launched = subprocess.run(
                [*shell, *self._java(jars), "kafka.Kafka", properties],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=self._directory,
                pass_fds=(lock,), start_new_session=True, check=True,
            )  # fmt: skip
        finally:
            os.close(lock)
        running = Running(int(launched.stdout), port, self._directory)
        ready = False
        try:
            new = self._directory / "broker.new"
            new.write_text(f"{running.pid} {port}\n")
            new.replace(self._directory / "broker")
            ready = self._ready(running)
        finally:
            if not ready:
                self._signal(running, signal.SIGKILL)
        if not ready:
            msg = "the broker did not start"
            raise self._failed(msg)
        return running

    def _java(self, jars: Path) -> list[str]:
        return [str(find_java()), *_JAVA_OPTIONS, "-cp", str(jars / "*")]

    def _log(self) -> Path:
        return self._directory / "kafka.log"

    def _failed(self, message: str) -> BrokerFailed:
        said = self._log().read_text(errors="replace").strip().splitlines()
        return BrokerFailed(message, detail="\n".join(said[-10:]), hint=f"see {self._log()}")


def claim_port(port: int) -> int:
    """Return ``port``, or a free one for 0; refuse one in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError as error:
            message = f"port {port} cannot be used"
            hint = "choose another with --port N, or --port 0 for any free one"
            raise BrokerFailed(message, detail=str(error.strerror), hint=hint) from error
        chosen: int = probe.getsockname()[1]
        return chosen


def _wait_until(happened: Callable[[], bool]) -> bool:
    """Wait for something, but not for ever; return whether it happened."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _answers(running: Running, cluster: str) -> bool:
    """Whether our broker, and not another one, serves clients on its port."""
    with suppress(OSError), socket.create_connection((HOST, running.port), timeout=1):
        client = AdminClient({"bootstrap.servers": running.address, "log_level": 0})
        with suppress(KafkaException):
            described = client.describe_cluster(request_timeout=5).result()
            return bool(described.cluster_id == cluster)
    return False
