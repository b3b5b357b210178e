"""From nothing to the first answer: ``pip install .`` and a query, all packages at hand.

The packages are gathered first, as wheels in a directory, which pip is told to take them from: its
own cache depends on what an index allows, and a network would be measured with it. Measured is one
installation into a new virtual environment, from the start of pip, and then ``reclock sql`` until
it has printed its first rows and ended.
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
BUILD = ["hatchling"]
"""What pip makes a wheel of the project with."""


def installed(home: Path) -> tuple[float, float]:
    """Return how long the installation took, and the first query."""
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    programs, wheels = home / "venv" / "bin", str(home / "wheels")
    pip = [str(programs / "python"), "-m", "pip"]
    gather = [*pip, "wheel", "--quiet", "--wheel-dir", wheels, str(ROOT), *BUILD]
    subprocess.run(gather, check=True)
    install = [*pip, "install", "--quiet", "--no-index", "--find-links", wheels, str(ROOT)]
    took = seconds(lambda: subprocess.run(install, check=True))
    command = [str(programs / "reclock"), "sql", "--state", str(home / "state"), "-c", QUERY]
    query = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    return took, query


def run() -> Iterator[Measure]:
    """Measure an installation."""
    with tempfile.TemporaryDirectory() as scratch:
        install, query = installed(Path(scratch))
    took = install + query
    figure = f"{took:.1f} s ({install:.1f} s pip, {query:.1f} s the query)"
    yield Measure("pip install . to the first query, packages cached", figure, "≤ 30 s", took <= 30)
