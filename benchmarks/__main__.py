"""Run the benchmarks named on the command line, or all, and print one table."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.measure import Measure


def names() -> list[str]:
    """Return the benchmark modules: those beside this file that have a ``run``."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [f.stem for f in files if f.stem not in ("__init__", "__main__", "measure")]


def main(chosen: list[str]) -> int:
    """Print a table of all measures; return 1 if a requirement is not met."""
    unknown = set(chosen) - set(names())
    if unknown:
        print(f"unknown benchmark {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
        return 2
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"Python {platform.python_version()}, {machine}, load {load}\n")
    print("| measure | figure | required | |\n|---|---|---|---|")
    failed = False
    for name in chosen or names():
        measures: Iterable[Measure] = importlib.import_module(f"benchmarks.{name}").run()
        for m in measures:
            print(f"| {m.name} | {m.figure} | {m.requirement} | {m.verdict} |", flush=True)
            failed = failed or m.met is False
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
