"""Jars, fetched once per user by the Ivy that pyspark carries: Apache Kafka, a JDBC driver.

``kafka_jars`` returns a directory with all of Kafka's, ``jdbc_jars`` one with PostgreSQL's driver.
It appears whole or not at all: Ivy writes elsewhere, then one rename. What Ivy had fetched before
it was interrupted is in its cache, which stays until all is there, so the next try goes on from it.
Processes that ask at the same time wait for the first, which fetches for all: a lock file that dies
with its holder. Ivy goes where the machine's other programs go (``dev.outside``): through its
proxies, to its mirror; and if Java does not trust who answers there, the machine decides.

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
from typing import TYPE_CHECKING, Final, NamedTuple

import platformdirs

from reclock.dev.outside import ivy_settings, proxies, trust_store
from reclock.errors import BrokerFailed
from reclock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KAFKA_VERSION: Final = "4.1.0"
JDBC_VERSION: Final = "42.7.4"


class _Jars(NamedTuple):
    """What to fetch: modules, and what people call it; the first module must come."""

    name: str
    version: str
    title: str
    size: str
    modules: tuple[tuple[str, str, str], ...]


_KAFKA: Final = _Jars(
    "kafka", KAFKA_VERSION, "Apache Kafka", "43 MB",
    (
        ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        ("org.slf4j", "slf4j-simple", "1.7.36"),  # or the broker would fail without a word
    ),
)  # fmt: skip
_JDBC: Final = _Jars(
    "jdbc", JDBC_VERSION, "PostgreSQL's JDBC driver", "1 MB",
    (("org.postgresql", "postgresql", JDBC_VERSION),),
)  # fmt: skip
_FETCHING: Final = re.compile(r"downloading \S+/(\S+)\.jar")
_DISTRUST: Final = re.compile("certificat|PKIX", re.IGNORECASE)


def kafka_jars(report: Callable[[str], None], cache: Path | None = None) -> Path:
    """Return the directory of Kafka's jars, fetching them first if they are not there.

    ``report`` is told what is being fetched; ``cache`` is the user's unless given.
    """
    return _fetched(_KAFKA, report, cache)


def jdbc_jars(report: Callable[[str], None], cache: Path | None = None) -> Path:
    """Return the directory of PostgreSQL's JDBC driver, as ``kafka_jars`` does."""
    return _fetched(_JDBC, report, cache)


def _fetched(what: _Jars, report: Callable[[str], None], cache: Path | None) -> Path:
    cache = cache or platformdirs.user_cache_path("reclock")
    jars = cache / f"{what.name}-{what.version}"
    if not jars.is_dir():
        with locked(cache / f"{what.name}.lock"):
            if not jars.is_dir():
                _fetch(what, jars, cache / f"ivy-{what.name}", report)
    return jars


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` inside the block, waiting until it is free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(what: _Jars, jars: Path, ivy_cache: Path, report: Callable[[str], None]) -> None:
    """Have Ivy put all jars into a new directory, then give it its name."""
    report(f"fetching {what.title} {what.version} ({what.size}, once)")
    made = Path(tempfile.mkdtemp(prefix=f"{jars.name}-", dir=jars.parent))
    try:
        description = made / "ivy.xml"
        description.write_text(_description(what))
        asked = ["-cache", str(ivy_cache), "-ivy", str(description)]
        # What Maven and Ivy have of other projects, in ~/.ivy2/local, is not what was published.
        own = [f"-Divy.default.ivy.user.dir={ivy_cache}"]
        if settings := ivy_settings(made):
            own, asked = [], [*asked, "-settings", str(settings)]
        asked += ["-retrieve", str(made / "jars" / "[artifact]-[revision].[ext]")]
        _, module, version = what.modules[0]
        wanted = made / "jars" / f"{module}-{version}.jar"
        said = _run([*_program(own), *asked], report)
        if not wanted.exists() and any(map(_DISTRUST.search, said)):
            trusting = trust_store(made / "authorities.jks")
            said = _run([*_program([*own, *trusting]), *asked], report) if trusting else said
        if not wanted.exists():
            message = f"{what.title} {what.version} could not be fetched"
            raise BrokerFailed(message, detail="\n".join(said[-5:]), hint=_hint(said))
        (made / "jars").rename(jars)
        shutil.rmtree(ivy_cache, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _program(options: Sequence[str] = ()) -> list[str]:
    """Return the command that starts Ivy, in a Java with options."""
    return [str(find_java()), *proxies(), *options, "-cp", str(_ivy()), "org.apache.ivy.Main"]


def _hint(said: list[str]) -> str:
    """Return what to do about a failure that Ivy has described."""
    if any(map(_DISTRUST.search, said)):
        return (
            "neither Java nor this machine trusts the certificate of the repository or proxy that"
            " answered: set SSL_CERT_FILE to a file with its certificate authority and try again"
        )
    return "check the connection to Maven Central and try again; what is there is kept"


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


def _description(what: _Jars) -> str:
    """Return an Ivy file that depends on what is wanted."""
    wanted = "\n".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="*->default"/>'
        for org, name, rev in what.modules
    )
    return (
        f'<ivy-module version="2.0"><info organisation="reclock" module="{what.name}"/>'
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
