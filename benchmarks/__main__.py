"""Run the benchmarks named on the command line, or all, and print one table.

What follows the first option goes to the benchmark, one of those that take options.
"""

from __future__ import annotations

import importlib
import inspect
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
    return [f.stem for f in files if f.stem not in ("__init__", "__main__", "bindings", "measure")]


def main(arguments: list[str]) -> int:
    """Print a table of all measures; return 1 if a requirement is not met."""
    first = next((n for n, text in enumerate(arguments) if text.startswith("-")), len(arguments))
    chosen, options = arguments[:first], arguments[first:]
    unknown = set(chosen) - set(names())
    if unknown:
        print(f"unknown benchmark {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
        return 2
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"Python {platform.python_version()}, {machine}, load {load}\n")
    failed = begun = False
    for name in chosen or names():
        run = importlib.import_module(f"benchmarks.{name}").run
        takes = bool(inspect.signature(run).parameters)
        if options and not takes:
            print(f"{name} takes no options")
            return 2
        measures: Iterable[Measure] = run(options) if takes else run()
        for m in measures:
            if not begun:
                print("| measure | figure | required | |\n|---|---|---|---|")
                begun = True
            print(f"| {m.name} | {m.figure} | {m.requirement} | {m.verdict} |", flush=True)
            failed = failed or m.met is False
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
