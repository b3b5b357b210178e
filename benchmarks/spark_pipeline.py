"""The same work in the driver's process, on ``local[2]``, and on a standalone cluster.

Workloads A and B of ``pipeline`` from Kafka to a committed sink, and Nexmark queries from Kafka to
a view (``spark.nexmark``), with so many orders or events. The places are ``driver`` (the setting
execution = 'driver': no job runs), ``local`` (auto on local[2]) and ``cluster`` (auto on a master
and two workers of one core, processes of this machine). Each place is a process, whose workloads
share one Spark; each workload has a new database. Spark is up before the clock starts. ::

    python -m benchmarks spark_pipeline --rows 1000000,5000000 --only A,q4 --places driver,local

The defaults of these options are ``RECLOCK_BENCH_SPARK_ROWS``, ``RECLOCK_BENCH_SPARK_ONLY`` and
``RECLOCK_BENCH_SPARK_PLACES``, if they are set; ``--only`` also knows ``small``, the latencies.

What the sinks wrote is compared with what numpy computes from the same rows; of the views all
places must have the same rows. CPU is that of processes by kind (``spark.processes``); the peak is
the resident memory of the driver's Python, without its JVM.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.standalone import standalone_cluster

from benchmarks.ingest import fill
from benchmarks.measure import Measure
from benchmarks.pipeline import CUSTOMERS, WORKLOADS, committed, customers
from benchmarks.spark import nexmark, small
from benchmarks.spark.drive import Figures, Spot, Task
from benchmarks.spark.processes import DRIVER, KINDS
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.testing.kafka import RealKafka

PLACES: Final = ("driver", "local", "cluster")
NAMES: Final = (*(work.name for work in WORKLOADS), *nexmark.QUERIES)
SMALL: Final = "small"
HEAD: Final = (
    "workload", "rows", "place", "rows/s", *(f"{kind}, CPU s" for kind in KINDS),
    "driver µs a row", "rows in the driver", "driver MiB", "ticks",
)  # fmt: skip


Found = dict[tuple[str, int, str], Figures]


def run(options: list[str]) -> Iterator[Measure]:
    """Print the table of all runs; measure what is required of them, and of small work."""
    chosen = _options(options)
    rows = [int(text) for text in chosen.rows.split(",")]
    names = chosen.only.split(",")
    found: Found = {}
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    with running_kafka() as kafka:
        for count in rows:
            for place, figures in _runs(kafka, names, count, chosen.places.split(",")):
                found[figures.name, count, place] = figures
                print(_line(figures.name, count, place, figures), flush=True)
    print()
    yield from _required(found)
    if SMALL in names:
        yield from small.run()


def _options(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("benchmarks spark_pipeline")
    for name, text, usual in (
        ("rows", "how many orders or events", "1000000"),
        ("only", "workloads", ",".join([*NAMES, SMALL])),
        ("places", "where", ",".join(PLACES)),
    ):
        default = os.environ.get(f"RECLOCK_BENCH_SPARK_{name.upper()}", usual)
        parser.add_argument(f"--{name}", default=default, help=f"{text}, by commas")
    chosen = parser.parse_args(given)
    for name, known in (("only", [*NAMES, SMALL]), ("places", PLACES)):
        if unknown := set(getattr(chosen, name).split(",")) - set(known):
            parser.error(f"no such {name}: {', '.join(sorted(unknown))}; there are {known}")
    return chosen


def _runs(
    kafka: RealKafka, names: list[str], rows: int, places: list[str]
) -> Iterator[tuple[str, Figures]]:
    topics: dict[str, str] = {}
    if {"A", "B"} & set(names):
        topics |= {"orders": fill(kafka, rows), "customers": customers(kafka)}
    if set(nexmark.QUERIES) & set(names):
        topics |= nexmark.fill(kafka, rows)
    for place in places:
        works = {work.name: work for work in WORKLOADS if work.name in names}
        written = {name: f"result-{uuid.uuid4().hex[:8]}" for name in works}
        tasks = [
            Task(
                name,
                work.sql.format(broker=kafka.address, written=written[name], **topics),
                {"orders": rows, "customers": CUSTOMERS}, sinks=True,
            )
            for name, work in works.items()
        ]  # fmt: skip
        for name in (name for name in names if name in nexmark.QUERIES):
            sources = nexmark.sources(nexmark.read_by(name), kafka.address, topics)
            sql = f"{sources}\nCREATE MATERIALIZED VIEW result AS {nexmark.QUERIES[name]}"
            tasks.append(Task(name, sql, nexmark.events(rows), sinks=False))
        for figures in _driven(place, tasks):
            if figures.name in works:
                read = committed(kafka.address, written[figures.name])
                twice = works[figures.name].check(read, rows)
                assert not twice, f"{twice} messages are there twice"
            yield place, figures
    for topic in topics.values():
        kafka.delete_topic(topic)


def _driven(place: str, tasks: list[Task]) -> Iterator[Figures]:
    """Run workloads in a process of their own; after one that fails, the others in another."""
    while tasks:
        found = 0
        for figures in _together(place, tasks):
            yield figures
            found += 1
        if found < len(tasks):
            print(f"{tasks[found].name} failed, {place}", flush=True)
        tasks = tasks[found + 1 :]


def _together(place: str, tasks: list[Task]) -> Iterator[Figures]:
    """Yield what workloads took, until one fails."""
    env = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "benchmarks.spark.drive"]
    with (
        _up(place) as spot,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(f"{json.dumps(asdict(order))}\n" for order in (spot, *tasks))
        process.stdin.close()
        for line in process.stdout:
            yield Figures(**json.loads(line))


@contextmanager
def _up(place: str) -> Iterator[Spot]:
    with ExitStack() as stack:
        if place != "cluster":
            yield Spot("driver" if place == "driver" else "auto", "local[2]", [])
            return
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(standalone_cluster(home / "cluster"))
        yield Spot("auto", cluster.master_url, [worker.pid for worker in cluster.workers])


def _line(name: str, rows: int, place: str, figures: Figures) -> str:
    ticks = ", ".join(f"{count} {where}" for where, count in sorted(figures.ticks.items()))
    cells = [
        name, f"{rows:,}", place, f"{rows / figures.seconds:,.0f}",
        *(f"{figures.cpu[kind]:.1f}" for kind in KINDS),
        f"{_driver_micros(figures, rows):.2f}", f"{figures.driver_rows:,}", f"{figures.peak:.0f}",
        ticks,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _driver_micros(figures: Figures, rows: int) -> float:
    """Return what a row costs the driver's Python; its JVM only schedules, or has tasks in it."""
    return figures.cpu[DRIVER] / rows * 1e6


def _required(found: Found) -> Iterator[Measure]:
    """Compare places and sizes; only what was run is asked for."""
    for (name, rows, place), figures in found.items():
        title = f"{name}, {rows:,} rows, {place}"
        if place == "driver":
            continue
        yield Measure(
            f"{title}: rows in the driver", f"{figures.driver_rows:,}", "0",
            figures.driver_rows == 0,
        )  # fmt: skip
        micros = _driver_micros(figures, rows)
        yield Measure(f"{title}: driver CPU", f"{micros:.2f} µs a row", "≤ 0.2", micros <= 0.2)
        other = found.get((name, rows, "driver" if place == "local" else "local"))
        if other is not None:
            yield from _compared(title, name, place, figures, other)
        least = min(count for n, count, p in found if (n, p) == (name, place))
        if least < rows:
            ratio = figures.peak / found[name, least, place].peak
            yield Measure(
                f"{title}: memory of the driver, {least:,} rows", f"{ratio:.2f} ×", "≤ 1.1 ×",
                ratio <= 1.1,
            )  # fmt: skip


def _compared(
    title: str, name: str, place: str, figures: Figures, other: Figures
) -> Iterator[Measure]:
    """Compare ``local`` with ``driver``, or ``cluster`` with ``local``."""
    if place == "local":
        against, least, most = "driver", 1.0 if name in "AB" else 1.5, 1.3
    else:
        against, least, most = "local", 0.9, 1.5
    speed = other.seconds / figures.seconds
    yield Measure(
        f"{title}: throughput", f"{speed:.2f} × {against}", f"≥ {least} ×", speed >= least
    )
    cost = sum(figures.cpu.values()) / sum(other.cpu.values())
    yield Measure(f"{title}: CPU", f"{cost:.2f} × {against}", f"≤ {most} ×", cost <= most)
    if figures.checksum:
        same = figures.checksum == other.checksum
        shown = f"{int(figures.checksum[0]):,} rows"
        yield Measure(f"{title}: contents", shown, f"those of {against}", same)
