"""What watching costs: a scrape, the console's first paint, and ticks while ten consoles are open.

The database has 100 objects, on the engine without Spark, whose ticks are short, so that what is
added shows. A console is what its page asks for: the overview every two seconds, what is new of the
history every five; two of the ten look at Time, with its queries. They ask from another process, as
browsers do. Ticks run in turns, a block without consoles and a block with them, so that a busy
machine is busy for both; medians count. Paint is a real Chromium's, of the machine, with nothing
cached.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from benchmarks.measure import Measure, median_seconds, seconds
from reclock import ManualClock
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database
from reclock.testing.model_engine import ModelEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OBJECTS = 100
BLOCKS = 4
TICKS = 20
ROWS = 100
CONSOLES = 10

_CONSOLES = """
import asyncio, sys, httpx
TIME = ('SELECT source, "timestamp", "partition", "offset" FROM reclock.bindings',
        "SELECT object, holder, since FROM reclock.holds")
async def every(seconds, first, ask):
    await asyncio.sleep(first)
    while True:
        await ask()
        await asyncio.sleep(seconds)
async def main(url, count):
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        async def time_page():
            for query in TIME:
                ask = {"query": query, "params": [], "limit": 20_000}
                (await client.post("/api/sql", json=ask)).raise_for_status()
        def history():
            last = 0
            async def look():
                nonlocal last
                found = (await client.get(f"/api/history?since={last}")).json()["samples"]
                last = found[-1]["t"] if found else last
            return look
        work = []
        for n in range(count):
            at = n / count
            work.append(every(2, 2 * at, lambda: client.get("/api/overview")))
            work.append(every(5, 5 * at, history()))
            if n < 2:
                work.append(every(2, at, time_page))
        await asyncio.gather(*work)
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


class Watched:
    """A database of 100 objects whose ticks are run by hand."""

    def __init__(self, directory: str) -> None:
        self._clock = ManualClock(1_700_000_000_000)
        self.db = Database(directory, ModelEngine(), clock=self._clock, background=True)
        self.db.execute("ALTER SYSTEM SET timestamp_interval = '1h'")
        for n in range(OBJECTS // 2):
            self.db.execute(f"CREATE TABLE t{n} (k INT, g INT)")
        for n in range(OBJECTS // 2):
            self.db.execute(
                f"CREATE MATERIALIZED VIEW v{n} AS SELECT g, count(*) AS n FROM t{n} GROUP BY g"
            )
        self._written = 0
        self.round()

    def round(self) -> float:
        """Write, and return how many seconds the tick took."""
        rows = [(n, n % 50) for n in range(self._written, self._written + ROWS)]
        self._written += ROWS
        self.db.insert("t0", rows)
        self._clock.advance(3_600_000)
        return seconds(self.db.tick)


def run() -> Iterator[Measure]:
    """Yield the scrape, the paint and the ratio of ticks."""
    with tempfile.TemporaryDirectory() as directory:
        watched = Watched(f"{directory}/state")
        with (
            watched.db as db,
            HttpServer(db, HttpOptions(port=0, trusts_local=True)) as server,
            httpx.Client(base_url=server.url, timeout=60) as client,
        ):
            scrape = median_seconds(lambda: client.get("/metrics").raise_for_status(), 30)
            yield Measure(
                f"console: a scrape with {OBJECTS} objects, median of 30",
                f"{1_000 * scrape:.1f} ms", "≤ 50 ms", scrape <= 0.050,
            )  # fmt: skip
            spent = statistics.median(_processor(server.parts.metrics.text) for _ in range(30))
            yield Measure("console: processor time of a scrape", f"{1_000 * spent:.1f} ms")
            yield from _painted(server.url)
            yield _ticked(watched, server.url)


def _processor(work: Callable[[], object]) -> float:
    """Return the processor time of ``work``, which other processes do not change."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def _painted(url: str) -> Iterator[Measure]:
    chromium = shutil.which("chromium")
    if chromium is None:
        yield Measure("console: first paint of the overview", "there is no chromium", "≤ 1 s")
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is one

    paints, whole = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(7):
            context = browser.new_context()
            page = context.new_page()
            begun = time.perf_counter()
            page.goto(url)
            page.locator(".well").wait_for()
            whole.append(time.perf_counter() - begun)
            entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            paints.append(float(page.evaluate(entry)) / 1_000)
            context.close()
        browser.close()
    paint = statistics.median(paints)
    yield Measure(
        "console: first contentful paint of the overview, median of 7",
        f"{1_000 * paint:.0f} ms", "≤ 1 s", paint <= 1.0,
    )  # fmt: skip
    yield Measure(
        "console: until the overview says whether all is well",
        f"{1_000 * statistics.median(whole):.0f} ms",
    )


def _ticked(watched: Watched, url: str) -> Measure:
    for _ in range(10):
        watched.round()
    alone, seen = [], []
    for block in range(2 * BLOCKS):
        took = seen if block % 2 else alone
        with tempfile.TemporaryDirectory() as place:
            script = Path(place) / "consoles.py"
            script.write_text(_CONSOLES)
            command = [sys.executable, str(script), url, str(CONSOLES)]
            consoles = subprocess.Popen(command) if block % 2 else None
            time.sleep(2.5)  # all of them have asked once
            try:
                for _ in range(TICKS):
                    took.append(watched.round())
                    time.sleep(0.1)
            finally:
                if consoles is not None:
                    assert consoles.poll() is None, "the consoles ended"
                    consoles.kill()
                    consoles.wait()
    without, with_them = statistics.median(alone), statistics.median(seen)
    ratio = with_them / without
    return Measure(
        f"console: a tick with {CONSOLES} consoles open, of {1_000 * without:.1f} ms without",
        f"{ratio:.3f} ×", "≤ 1.05 ×", ratio <= 1.05,
    )  # fmt: skip
