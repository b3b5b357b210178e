"""From nothing to the first answer: ``pip install .`` and a query, all packages in pip's cache.

Into a new virtual environment, twice: the first fills the cache, the second is measured, from the
start of pip until ``reclock sql`` has printed its first rows, without making the environment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Measure, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
QUERY = "CREATE TABLE t (a INT); INSERT INTO t VALUES (41); SELECT a FROM t"


def installed(home: Path) -> tuple[float, float]:
    """Return how long the installation took, and the first query."""
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    programs = home / "venv" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet"]
    install = seconds(lambda: subprocess.run([*pip, str(ROOT)], check=True))
    command = [str(programs / "reclock"), "sql", "--state", str(home / "state"), "-c", QUERY]
    query = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    return install, query


def run() -> Iterator[Measure]:
    """Measure the second of two installations."""
    with tempfile.TemporaryDirectory() as scratch:
        installed(Path(scratch) / "first")
    with tempfile.TemporaryDirectory() as scratch:
        install, query = installed(Path(scratch) / "second")
    took = install + query
    figure = f"{took:.1f} s ({install:.1f} s pip, {query:.1f} s the query)"
    yield Measure("pip install . to the first query, packages cached", figure, "≤ 30 s", took <= 30)
