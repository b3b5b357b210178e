"""What watching costs: a scrape, the console's first paint, and ticks while ten consoles are open.

The database has 100 objects, on the engine without Spark, whose ticks are short and all alike, so
that what is added shows. A console asks what its pages do (``static/*.js``): the overview every two
seconds, and what the page that is open needs. Of the ten, three show Time, two Pipeline with a view
open, two Sources, one Sinks, one Settings, one Overview. They ask from another process, as browsers
do. Ticks run in turns, a block without consoles and a block with them, then in the other order, so
that a busy machine is busy for both and what grows with each tick grows for both; medians count.
Beside the time that passed stand the processor time of the thread that ticks, which is the work
alone, and of the server and the consoles, of which the clients have theirs on the same two cores
here. Paint is a real Chromium's, of the machine, with nothing cached.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from benchmarks.measure import Measure, median_seconds, seconds
from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.server.http.server import HttpOptions, HttpServer
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OBJECTS = 100
SOURCES = 3
BLOCKS = 6
TICKS = 20
PAUSE = 0.25
ROWS = 100
CONSOLES = 10

_CONSOLES = """
import asyncio, json, sys, httpx
def sql(client, query):
    async def ask():
        body = {"query": query, "params": [], "limit": 20_000}
        (await client.post("/api/sql", json=body)).raise_for_status()
    return ask
def path(client, text):
    async def ask():
        (await client.get(text)).raise_for_status()
    return ask
def time(client):
    last = 0
    async def ask():
        nonlocal last
        last = (await client.get(f"/api/time?since={last}")).raise_for_status().json()["next"]
    return ask
def page(client, n):
    match n:
        case 0 | 1 | 2:
            return [(2, time(client))]
        case 3 | 4:
            return [(5, path(client, "/api/pipeline")), (5, path(client, f"/api/object?name=v{n}"))]
        case 5 | 6:
            return [(5, sql(client, "SELECT object, code, message, detail FROM reclock.errors "
                            "WHERE object IS NOT NULL LIMIT 100")),
                    (5, sql(client, 'SELECT source, number, "timestamp", "partition", "offset", '
                            'code, reason, "key", value FROM reclock.dead_letters '
                            "ORDER BY number DESC LIMIT 100"))]
        case 7:
            return [(5, sql(client, "SELECT sink, detail, last_error FROM reclock.sink_status"))]
        case 8:
            return [(10, sql(client, "SELECT name, value, description FROM reclock.settings "
                             "ORDER BY name")),
                    (10, sql(client, "SELECT rolname, rolcanlogin, rolsuper FROM pg_roles "
                             "ORDER BY rolname")),
                    (10, sql(client, "SELECT grantee, table_schema, table_name, privilege_type "
                             "FROM information_schema.table_privileges ORDER BY 1, 4, 2, 3"))]
    return []
async def every(seconds, first, ask):
    await asyncio.sleep(first)
    while True:
        await ask()
        await asyncio.sleep(seconds)
async def main(url, count):
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        work = []
        for n in range(count):
            at = 2 * n / count
            work.append(every(2, at, path(client, "/api/overview")))
            work += [every(seconds, at, ask) for seconds, ask in page(client, n % 10)]
        await asyncio.gather(*work)
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


class Watched:
    """A database of 100 objects whose ticks are run by hand."""

    def __init__(self, directory: str) -> None:
        self._clock = ManualClock(1_700_000_000_000)
        self.db = Database(directory, LocalEngine(), clock=self._clock, background=True)
        self.db.execute("ALTER SYSTEM SET timestamp_interval = '1h'")
        tables = OBJECTS // 2 - SOURCES
        for n in range(tables):
            self.db.execute(f"CREATE TABLE t{n} (k INT, g INT)")
        for n in range(OBJECTS // 2):
            self.db.execute(
                f"CREATE MATERIALIZED VIEW v{n} AS SELECT g, count(*) AS n FROM t{n % tables} "
                "GROUP BY g"
            )
        for n in range(SOURCES):
            self.db.execute(f"CREATE SOURCE s{n} FROM LOAD GENERATOR COUNTER (MAX_CARDINALITY 9)")
        self._written = 0
        self.round()

    def round(self) -> tuple[float, float]:
        """Write, and return how long the tick took, and its thread's processor time."""
        rows = [(n, n % 50) for n in range(self._written, self._written + ROWS)]
        self._written += ROWS
        self.db.insert("t0", rows)
        self._clock.advance(3_600_000)
        begun = time.thread_time()
        took = seconds(self.db.tick)
        return took, time.thread_time() - begun


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
            yield from _ticked(watched, server.url)


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


@dataclass
class Block:
    """What some ticks took, and meanwhile the process and the consoles."""

    walls: list[float] = field(default_factory=list)
    works: list[float] = field(default_factory=list)
    lasted: float = 0.0
    process: float = 0.0
    consoles: float = 0.0


def _ticked(watched: Watched, url: str) -> Iterator[Measure]:
    for _ in range(10):
        watched.round()
    alone, seen = Block(), Block()
    for block in range(2 * BLOCKS):
        watching = block % 4 in {1, 2}
        found = seen if watching else alone
        with tempfile.TemporaryDirectory() as place:
            script = Path(place) / "consoles.py"
            script.write_text(_CONSOLES)
            command = [sys.executable, str(script), url, str(CONSOLES)]
            before = _children()
            consoles = subprocess.Popen(command) if watching else None
            time.sleep(2.5)  # all of them have asked once
            begun, process = time.perf_counter(), time.process_time()
            try:
                for _ in range(TICKS):
                    wall, work = watched.round()
                    found.walls.append(wall)
                    found.works.append(work)
                    time.sleep(PAUSE)
            finally:
                found.lasted += time.perf_counter() - begun
                found.process += time.process_time() - process
                if consoles is not None:
                    assert consoles.poll() is None, "the consoles ended"
                    consoles.kill()
                    consoles.wait()
                    found.consoles += _children() - before
    without, with_them = statistics.median(alone.walls), statistics.median(seen.walls)
    ratio = with_them / without
    yield Measure(
        f"console: a tick with {CONSOLES} consoles open, of {1_000 * without:.1f} ms without",
        f"{ratio:.3f} ×", "≤ 1.05 ×", ratio <= 1.05,
    )  # fmt: skip
    works = statistics.median(seen.works) / statistics.median(alone.works)
    yield Measure("console: processor time of the thread that ticks, with them", f"{works:.3f} ×")
    cost = seen.process / seen.lasted - alone.process / alone.lasted
    yield Measure(
        f"console: what {CONSOLES} consoles cost the server, of a processor", f"{100 * cost:.1f} %"
    )
    clients = seen.consoles / (seen.lasted + 2.5 * BLOCKS)
    yield Measure("console: what they cost themselves, of a processor", f"{100 * clients:.1f} %")


def _children() -> float:
    """Return the processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
