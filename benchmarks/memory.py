"""State on disk that is larger than the memory a process may have.

A child process limits its own data (``RLIMIT_DATA``: heap and private mappings, so all that
is not a mapped file or a stack), then loads orders into a table with two indexes and a
join + aggregate view until the files are four times the limit. It goes on ticking,
looks rows up, reads the view, and merges as any database does. If it needed more than its
limit anywhere it would fail with MemoryError, and the benchmark with it.

The allocator is told to give freed arrays back (``ALLOCATOR``): as it comes, the C library
keeps what a merge has used, and a process that was large once stays so.

Nothing here asks Spark, so there is no JVM, which has a limit of its own (``-Xmx``). Runs
are mapped, not read: the kernel drops their pages whenever somebody else needs memory.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Measure, seconds
from benchmarks.views import TOTALS, Shop, largest_resident

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = int(os.environ.get("RECLOCK_BENCH_LIMIT_MIB", "512")) << 20
ALLOCATOR = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "262144",
}
"""One allocator, which gives large arrays back to the system when they are freed."""
TIMES = 3
FILLED = 4
"""Merges that are done after the load make the files smaller again."""
CUSTOMERS = 100_000
CHUNK = 50_000
TICKS = 21
LOOK_UPS = 21


def stored(directory: Path) -> int:
    """Return the bytes of all files; merges may remove some meanwhile."""
    sizes = []
    for file in directory.rglob("*"):
        try:
            sizes.append(file.stat().st_size if file.is_file() else 0)
        except FileNotFoundError:
            continue
    return sum(sizes)


def constrained(directory: Path) -> dict[str, Any]:
    """Fill a database to ``FILLED`` times the limit of this process, use it, say how that went."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    with largest_resident() as largest, Shop(directory, CUSTOMERS * 10) as shop:
        shop.view("v", TOTALS)
        shop.db.insert("customers", shop.customers())
        rows = 0

        def load() -> None:
            nonlocal rows
            while rows % (20 * CHUNK) or stored(directory) < FILLED * LIMIT:
                shop.db.insert("orders", shop.orders(rows, CHUNK, 0))
                shop._advance()  # noqa: SLF001
                rows += CHUNK

        took = seconds(load)
        shop._next = rows  # noqa: SLF001
        ticks = [shop.tick(1_000) for _ in range(TICKS)]
        found = [
            seconds(lambda: shop.db.execute("SELECT * FROM orders WHERE id = $1", (key,)))  # noqa: B023
            for key in range(0, rows, rows // LOOK_UPS)
        ]
        counted = sum(row[1] for row in shop.db.execute("SELECT region, n FROM v").rows)
        merged = sum(file.name.startswith("merge-") for file in directory.rglob("*.seg"))
        size = stored(directory)
    return {
        "rows": rows,
        "counted": counted,
        "seconds": took,
        "stored": size,
        "merged": merged,
        "anonymous": largest["RssAnon"] << 10,
        "tick": statistics.median(ticks),
        "look_up": statistics.median(found),
    }


def run() -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "benchmarks.memory", directory]
        environment = os.environ | ALLOCATOR
        done = subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    made = json.loads(done.stdout)
    size, limit = made["stored"], LIMIT
    figure = f"{size >> 20} MiB / {limit >> 20} MiB = {size / limit:.1f}"
    name = f"state on disk of {made['rows']:,} orders / memory the process may have"
    right = made["counted"] == made["rows"] + 500
    yield Measure(name, figure, f"≥ {TIMES}, every row counted", size >= TIMES * limit and right)
    yield Measure(
        "largest anonymous memory of that process",
        f"{made['anonymous'] >> 20} MiB",
        f"≤ {limit >> 20} MiB",
        made["anonymous"] <= limit,
    )
    yield Measure("files it merged others into", f"{made['merged']}", "≥ 1", made["merged"] >= 1)
    yield Measure(
        "load, tick of 1,000 rows, and look-up by id under that limit",
        f"{made['rows'] / made['seconds'] / 1e3:.0f} thousand rows/s, "
        f"{made['tick'] * 1e3:.1f} ms, {made['look_up'] * 1e3:.1f} ms",
    )


if __name__ == "__main__":
    print(json.dumps(constrained(Path(sys.argv[1]))))
