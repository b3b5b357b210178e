"""The jars of Apache Kafka, fetched once per user by the Ivy that pyspark carries.

``kafka_jars`` returns a directory with all of them. It appears whole or not at all: Ivy
writes beside it, then one rename. What Ivy had fetched before it was interrupted is in its
cache, which stays until all is there, so the next try goes on from it. Processes that ask
at the same time wait for the first, which fetches for all: a lock file that dies with its
holder.

Tests: tests/dev/test_jars.py.
"""

from __future__ import annotations

import fcntl
import importlib.util
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import platformdirs

from reclock.errors import BrokerFailed
from reclock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KAFKA_VERSION: Final = "4.1.0"

_MODULES: Final = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),  # or the broker would fail without a word
)
_FETCHING: Final = re.compile(r"downloading \S+/(\S+)\.jar")


def kafka_jars(report: Callable[[str], None], cache: Path | None = None) -> Path:
    """Return the directory of Kafka's jars, fetching them first if they are not there.

    ``report`` is told what is being fetched; ``cache`` is the user's unless given.
    """
    cache = cache or platformdirs.user_cache_path("reclock")
    jars = cache / f"kafka-{KAFKA_VERSION}"
    if not jars.is_dir():
        with locked(cache / "kafka.lock"):
            if not jars.is_dir():
                _fetch(jars, cache / "ivy", report)
    return jars


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` inside the block, waiting for whoever holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(jars: Path, ivy_cache: Path, report: Callable[[str], None]) -> None:
    """Have Ivy put all jars into a new directory, then give it its name."""
    report(f"fetching Apache Kafka {KAFKA_VERSION} (43 MB, once)")
    made = Path(tempfile.mkdtemp(prefix=f"{jars.name}-", dir=jars.parent))
    try:
        description = made / "ivy.xml"
        description.write_text(_description())
        pattern = str(made / "jars" / "[artifact]-[revision].[ext]")
        program = [str(find_java()), "-cp", str(_ivy()), "org.apache.ivy.Main"]
        command = [*program, "-cache", str(ivy_cache), "-ivy", str(description)]
        said = _run([*command, "-retrieve", pattern], report)
        if not any((made / "jars").glob(f"kafka_*-{KAFKA_VERSION}.jar")):
            message = f"Apache Kafka {KAFKA_VERSION} could not be fetched"
            hint = "check the connection to Maven Central and try again; what is there is kept"
            raise BrokerFailed(message, detail="\n".join(said[-5:]), hint=hint)
        (made / "jars").rename(jars)
        shutil.rmtree(ivy_cache, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _run(command: list[str], report: Callable[[str], None]) -> list[str]:
    """Run Ivy, report each jar it fetches, and return its warnings and errors."""
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as ivy:
        for line in ivy.stdout or ():
            if jar := _FETCHING.match(line):
                report(f"fetching {jar[1]}")
            elif "WARN" in line or "ERROR" in line or "rror" in line:
                said.append(line.strip())
    return said


def _description() -> str:
    """Return an Ivy file that depends on what the broker needs."""
    wanted = "\n".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="*->default"/>'
        for org, name, rev in _MODULES
    )
    return (
        '<ivy-module version="2.0"><info organisation="reclock" module="kafka"/>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )


def _ivy() -> Path:
    """Return pyspark's Ivy, without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        message = "pyspark carries no Ivy to fetch Apache Kafka with"
        raise BrokerFailed(message, hint="pip install --force-reinstall pyspark")
    return found[-1]
