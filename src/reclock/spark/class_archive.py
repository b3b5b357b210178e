"""The classes of Spark, loaded and checked once: half of its start is to do that again.

Java can keep loaded classes in a file (class-data sharing), which the next JVM maps. One such
archive is kept per Java, Spark and class path in the user's cache. Nothing waits for it: every
Spark writes down which classes it loads, at no cost, and if these are a tenth more than there are
in the archive, a process of its own, of the lowest priority, makes another of all that were ever
loaded: half a minute of one core, once or twice in the life of an installation. It is begun some
seconds after Spark has started, and ends with who began it, however that ends: no process is left
behind, and one that lives longer makes it another time.

- An archive appears whole or not at all: written under another name, synced, renamed.
- Never two at once: a lock file, which the process that makes it holds as long as it lives.
- It never stops Spark: Java itself checks that an archive is of this Java and of these jars, and
  starts without one that is not; that one is removed. A Java that does not start with these
  options is started without them, now and from then on.
- It never stays in the way: a first try that fails leaves an empty file, which says not to try
  again, a later one the archive that was there.
  Archives that were not used for a month are removed when another is made.

A use costs nothing and saves five of the eleven seconds of a start (docs/performance.md).

Tests: tests/spark/test_class_archive.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from reclock.clock import SystemClock
from reclock.java import SPARK_OPTIONS, find_java, java_build, spark_options

if TYPE_CHECKING:
    from collections.abc import Iterator

DELAY_SECONDS: Final = 20.0
GROWTH: Final = 1.1
KEPT_MS: Final = 30 * 24 * 3_600_000
_CLASS_PATH: Final = (  # whatever else decides which classes there are, and from where
    SPARK_OPTIONS, "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR",
    "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS",
)  # fmt: skip
_MAKE: Final = """
part=$1 made=$2 loaded=$3 known=$4; shift 4
exec 3<&0
(
  nice -n 19 "$@" 3<&- & java=$!
  ( read -r _ <&3; kill $java ) & watch=$!
  wait $java; status=$?
  kill $watch
  if [ $status -eq 0 ]; then sync "$part"; mv -f "$part" "$made"; mv -f "$loaded" "$known"
  elif [ $status -le 128 ]; then : >> "$made"; mv -f "$loaded" "$known"; fi
  rm -f "$part" "$loaded"
) &
"""
"""``read`` ends when the process does that has the other end of the pipe: Java is killed then."""


class ClassArchive:
    """The archive for a Spark that this process starts; ``scratch`` is a directory of its own."""

    def __init__(self, scratch: Path, cache: Path | None = None) -> None:
        self._cache = cache or platformdirs.user_cache_path("reclock")
        self._list = scratch / "classes"
        self._made: Final = self._cache / f"spark-{_key()}.jsa"
        self._class_path: str | None = None
        self._lock = Lock()
        self._life: int | None = None
        """What is open as long as this process lives: an archive is made no longer."""

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Have a JVM that is launched in this block use the archive, or write its list."""
        options: list[str] = []
        with suppress(OSError):
            options = self._options()
        with spark_options(options):
            yield

    def started(self, gateway: Any) -> None:
        """Note that a JVM runs with what was offered; what it loads will be looked at."""
        system = gateway.jvm.java.lang.System
        if "sharing" not in str(system.getProperty("java.vm.info")):
            with suppress(OSError):
                self._discard()
        if self._list.exists():
            self._class_path = str(system.getProperty("java.class.path"))
            timer = Timer(DELAY_SECONDS, self.make)
            timer.daemon = True
            timer.start()

    def make(self) -> None:
        """Begin to make the archive, if it would be better and is not being made."""
        with self._lock, suppress(OSError):
            if self._class_path is not None:
                self._begin(self._class_path)

    def failed(self) -> None:
        """Do without what was offered: the JVM did not start with it, or died of it."""
        with suppress(OSError):
            if self._made.exists():
                self._discard()
            else:
                self._made.touch()  # not even a list can be had of this Java

    def _options(self) -> list[str]:
        record = f"-XX:DumpLoadedClassList={self._list}"
        try:
            if not self._made.stat().st_size:
                return []
            os.utime(self._made)
        except FileNotFoundError:
            self._cache.mkdir(parents=True, exist_ok=True)
            return [record]
        return ["-Xshare:auto", f"-XX:SharedArchiveFile={self._made}", record]

    def _discard(self) -> None:
        """Remove an archive that is of no use: another one will be made."""
        if self._made.stat().st_size:
            self._made.unlink()

    def _begin(self, class_path: str) -> None:
        with (self._cache / "spark.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part, wanted, known = (
                self._made.with_suffix(end) for end in (".part", ".wanted", ".classes")
            )
            archived = known.read_text("utf-8").splitlines() if known.exists() else []
            loaded = self._list.read_text("utf-8").rpartition("\n")[0]  # without half a line
            classes = list(dict.fromkeys([*archived, *loaded.splitlines()]))
            if self._made.exists() and len(classes) < GROWTH * len(archived):
                return
            self._remove_unused()
            wanted.write_text("\n".join([*classes, ""]), "utf-8")
            dump = [
                str(find_java()), "-Xshare:dump", "-Xmx512m", f"-XX:SharedClassListFile={wanted}",
                f"-XX:SharedArchiveFile={part}", "--add-modules=jdk.incubator.vector",
                "-cp", class_path,
            ]  # fmt: skip
            nowhere = subprocess.DEVNULL
            mine, self._life = os.pipe()
            try:
                subprocess.run(
                    ["sh", "-c", _MAKE, "sh", part, self._made, wanted, known, *dump],
                    stdin=mine, stdout=nowhere, stderr=nowhere, check=False,
                    start_new_session=True, pass_fds=(lock.fileno(),),
                )  # fmt: skip
            finally:
                os.close(mine)

    def _remove_unused(self) -> None:
        oldest = SystemClock().now_ms() - KEPT_MS
        for archive in self._cache.glob("spark-*.jsa"):
            if archive.stat().st_mtime_ns // 1_000_000 < oldest:
                archive.unlink()
                archive.with_suffix(".classes").unlink(missing_ok=True)


def _key() -> str:
    """Return a name for all JVMs that may share an archive."""
    import pyspark  # noqa: PLC0415 - half a second that many never need

    jars = Path(pyspark.__file__).with_name("jars")
    since = jars.stat().st_mtime_ns if jars.exists() else ""
    about = [java_build(), pyspark.__version__, f"{jars} {since}"]
    about += [f"{name}={os.environ.get(name)}" for name in _CLASS_PATH]
    return hashlib.sha256("\n".join(about).encode()).hexdigest()[:16]
