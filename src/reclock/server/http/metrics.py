"""``GET /metrics``: what Prometheus scrapes.

``FAMILIES`` is the table of all metrics: name, kind, labels, meaning. Names and units follow
Prometheus' conventions: a prefix, base units (seconds, bytes), ``_total`` for what only grows. Each
has a function in ``_SAMPLES`` that gives its samples from the facts of the database. The process's
own come from the client library.

A scrape takes no lock that a tick holds, reads no file and runs no query.

Tests: tests/server/http/test_metrics.py; docs/metrics.md lists the table.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

import reclock
from reclock.engine.meters import SECONDS
from reclock.session.facts import SINK_STATES
from reclock.session.source_facts import SOURCE_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from reclock.engine.meters import Counted
    from reclock.server.http.gauges import Gauges
    from reclock.session.database import Database

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

Labels = tuple[str, ...]


class Family(NamedTuple):
    """A metric: ``kind`` is counter, gauge or histogram."""

    name: str
    kind: str
    labels: Labels
    meaning: str


class Scrape:
    """What one scrape looks at: each kind of fact once."""

    def __init__(self, db: Database, gauges: Gauges) -> None:
        facts, meters = db.facts, db.meters
        self.sources = list(facts.sources())
        self.sinks = list(facts.sinks())
        self.objects = list(facts.objects())
        self.sizes = list(facts.sizes())
        self.timelines = list(facts.timelines())
        self.faults = facts.faults.last()
        self.failed = db.failure is not None
        self.holds = facts.holds()
        self.expirations = facts.expirations()
        self.disk = facts.disk()
        self.spark = facts.spark()
        self.now_ms = db.now_ms
        self.meters = meters
        self.statements = meters.statements()
        self.merges = meters.merges()
        self.merging = db.merging
        self.gauges = gauges


def _seconds(ms: int | None) -> float:
    return float("nan") if ms is None else ms / 1_000


def _number(value: int | None) -> float:
    return float("nan") if value is None else float(value)


def _states(name: str, state: str, states: Iterable[str]) -> Iterator[tuple[Labels, float]]:
    for each in states:
        yield (name, each), float(each == state)


_SAMPLES: Final[list[tuple[Family, Callable[[Scrape], Iterable[tuple[Labels, float]]]]]] = []


def _metric(
    name: str, kind: str, labels: str, meaning: str
) -> Callable[[Callable[[Scrape], Iterable[tuple[Labels, float]]]], None]:
    def add(samples: Callable[[Scrape], Iterable[tuple[Labels, float]]]) -> None:
        _SAMPLES.append((Family(name, kind, tuple(labels.split()), meaning), samples))

    return add


_metric("reclock_info", "gauge", "version", "1; the version is a label")(
    lambda _: [((reclock.__version__,), 1.0)]
)

_metric(
    "reclock_failed", "gauge", "",
    "1 when nothing goes on in the background and only a new process helps, else 0",
)(lambda s: [((), float(s.failed))])  # fmt: skip

# Sources.
_metric("reclock_source_records_total", "counter", "source", "Records read by this process")(
    lambda s: [((x.name,), x.records) for x in s.sources]
)
_metric("reclock_source_bytes_total", "counter", "source", "Size of these records, decoded")(
    lambda s: [((x.name,), x.bytes) for x in s.sources]
)
_metric("reclock_source_errors_total", "counter", "source", "Records that do not decode")(
    lambda s: [((x.name,), x.errors) for x in s.sources]
)
_metric(
    "reclock_source_lag_records", "gauge", "source",
    "Records that are there and have no time yet; NaN: not known",
)(lambda s: [((x.name,), _number(x.lag_records)) for x in s.sources])  # fmt: skip
_metric(
    "reclock_source_lag_bytes", "gauge", "source",
    "How much of a database's log has no time yet, of sources that are databases",
)(lambda s: [((x.name,), x.lag_bytes) for x in s.sources if x.lag_bytes is not None])  # fmt: skip
_metric(
    "reclock_source_lag_seconds", "gauge", "source",
    "How long ago all that was there had a time; NaN: never",
)(lambda s: [((x.name,), _seconds(x.lag_ms)) for x in s.sources])  # fmt: skip
_metric(
    "reclock_source_bindings", "gauge", "source", "Bindings of times to positions that are kept"
)(lambda s: [((x.name,), x.bindings) for x in s.sources])
_metric(
    "reclock_source_state", "gauge", "source state",
    f"1 for the state that the source is in, of {', '.join(SOURCE_STATES)}",
)(lambda s: [y for x in s.sources for y in _states(x.name, x.state, SOURCE_STATES)])  # fmt: skip

# Objects that keep rows.
_metric(
    "reclock_object_lag_seconds", "gauge", "object kind",
    "How long ago the last complete time is; NaN: its timeline has no clock",
)(lambda s: [((x.name, x.kind), _seconds(x.lag_ms)) for x in s.objects])  # fmt: skip
_metric(
    "reclock_object_changed_rows_total", "counter", "object kind",
    "Updates of its rows that ticks have published",
)(lambda s: [((x.name, x.kind), x.changed) for x in s.objects])  # fmt: skip

_metric(
    "reclock_object_errors", "gauge", "object kind",
    "Errors that it holds in the place of rows, up to 10,000: who reads it gets one",
)(lambda s: [((x.name, x.kind), x.errors) for x in s.faults])  # fmt: skip

# Sinks.
_metric(
    "reclock_sink_lag_seconds", "gauge", "sink",
    "For how long changes wait to be written; NaN: not known",
)(lambda s: [((x.name,), _seconds(x.lag_ms)) for x in s.sinks])  # fmt: skip
_metric(
    "reclock_sink_frontier_timestamp_seconds", "gauge", "sink",
    "Times before it are committed; NaN: not known",
)(lambda s: [((x.name,), _seconds(x.frontier)) for x in s.sinks])  # fmt: skip
_metric("reclock_sink_messages_total", "counter", "sink", "Messages committed by this process")(
    lambda s: [((x.name,), x.messages) for x in s.sinks]
)
_metric("reclock_sink_bytes_total", "counter", "sink", "Size of the values of these messages")(
    lambda s: [((x.name,), x.bytes) for x in s.sinks]
)
_metric(
    "reclock_sink_transactions_total", "counter", "sink", "Transactions that had messages"
)(lambda s: [((x.name,), x.transactions) for x in s.sinks])  # fmt: skip
_metric("reclock_sink_retries_total", "counter", "sink", "How often it had to try again")(
    lambda s: [((x.name,), x.retries) for x in s.sinks]
)
_metric("reclock_sink_in_flight_messages", "gauge", "sink", "Messages of the current transaction")(
    lambda s: [((x.name,), x.in_flight) for x in s.sinks]
)
_metric(
    "reclock_sink_state", "gauge", "sink state",
    f"1 for the state that the sink is in, of {', '.join(SINK_STATES)}",
)(lambda s: [y for x in s.sinks for y in _states(x.name, x.state, SINK_STATES)])  # fmt: skip

# Timelines and their ticks.
_metric(
    "reclock_timeline_lag_seconds", "gauge", "timeline",
    "How long ago the last complete time is; NaN: the timeline has no clock",
)(lambda s: [((x.name,), _seconds(x.lag_ms)) for x in s.timelines])  # fmt: skip
_metric(
    "reclock_timeline_failing",
    "gauge",
    "timeline",
    "1 while its ticks fail, else 0",
)(lambda s: [((x.name,), float(x.failure is not None)) for x in s.timelines])
_metric(
    "reclock_ticks_total", "counter", "timeline place",
    "Ticks that were published, by where they were computed: driver or spark",
)(lambda s: [((str(p), place), n) for (p, place), n in s.meters.ticks().items()])  # fmt: skip
_metric(
    "reclock_tick_rows_total", "counter", "phase",
    "Updates: taken in by gather, made by compute, written by write and publish",
)(lambda s: [((phase,), n) for phase, n in s.meters.rows().items()])  # fmt: skip

# What is stored.
_metric("reclock_arrangement_records", "gauge", "object operator", "Updates in its runs")(
    lambda s: _summed(((x.object, x.operator), x.records) for x in s.sizes)
)
_metric("reclock_arrangement_bytes", "gauge", "object operator", "Size of its runs")(
    lambda s: _summed(((x.object, x.operator), x.bytes) for x in s.sizes)
)
_metric("reclock_arrangement_runs", "gauge", "object operator", "Runs that it is made of")(
    lambda s: _summed(((x.object, x.operator), x.runs) for x in s.sizes)
)
_metric("reclock_holds", "gauge", "object", "Who keeps history of the object, how many")(
    lambda s: [((name,), count) for name, (count, _) in s.holds.items()]
)
_metric(
    "reclock_hold_age_seconds",
    "gauge",
    "object",
    "How long ago the first time is that is held; NaN: none is",
)(
    lambda s: [
        ((name,), _seconds(None if first is None else max(0, s.now_ms - first)))
        for name, (_, first) in s.holds.items()
    ]
)
_metric(
    "reclock_expiration_remaining_seconds", "gauge", "object",
    "How long until the object keeps nothing any more",
)(lambda s: [((name,), left / 1_000) for name, left in s.expirations.items()])  # fmt: skip
_metric("reclock_merges_total", "counter", "outcome", "Merges of runs: done or failed")(
    lambda s: [(("done",), s.merges[0]), (("failed",), s.merges[1])]
)
_metric("reclock_merges_running", "gauge", "", "Running merges")(lambda s: [((), s.merging)])
_metric(
    "reclock_state_disk_free_bytes", "gauge", "", "Free space on the disk of the files, if local"
)(lambda s: [] if s.disk is None else [((), s.disk.free)])
_metric(
    "reclock_state_disk_size_bytes", "gauge", "", "Size of the disk of the files, if local"
)(lambda s: [] if s.disk is None else [((), s.disk.size)])  # fmt: skip

# Spark.
_metric(
    "reclock_spark_jobs_total", "counter", "stage",
    "Spark jobs, by what for: tick, load, catch up, renewal, merge, source",
)(lambda s: [((stage,), jobs) for stage, (jobs, _, _) in s.spark.items()])  # fmt: skip
_metric("reclock_spark_tasks_total", "counter", "stage", "Tasks of these jobs")(
    lambda s: [((stage,), tasks) for stage, (_, tasks, _) in s.spark.items()]
)
_metric(
    "reclock_spark_shuffled_bytes_total", "counter", "stage", "What these tasks sent one another"
)(lambda s: [((stage,), sent) for stage, (_, _, sent) in s.spark.items()])

# Who asks.
_metric("reclock_statement_errors_total", "counter", "code", "Statements that failed, by SQLSTATE")(
    lambda s: [((code,), n) for code, n in s.meters.errors().items()]
)
_metric("reclock_connections", "gauge", "protocol", "Clients that have logged in")(
    lambda s: [(("postgresql",), s.gauges.connections()), (("http",), s.gauges.requests)]
)
_metric("reclock_http_streams", "gauge", "", "Subscriptions that are followed over HTTP")(
    lambda s: [((), s.gauges.streams)]
)
_metric("reclock_http_requests_total", "counter", "path status", "Requests that were answered")(
    lambda s: [((path, str(status)), n) for (path, status), n in s.gauges.answered().items()]
)

TICKS: Final = Family(
    "reclock_tick_duration_seconds", "histogram", ("phase",),
    "How long ticks take: gather, compute, write, publish, and the total of these",
)  # fmt: skip
STATEMENTS: Final = Family(
    "reclock_statement_duration_seconds", "histogram", ("kind",),
    "How long statements take until they are done or their first rows are there; look_up is a "
    "query that is answered from an index at once",
)  # fmt: skip
FAMILIES: Final = (*(family for family, _ in _SAMPLES), TICKS, STATEMENTS)
"""All metrics of reclock itself."""


def _summed(samples: Iterable[tuple[Labels, float]]) -> Iterable[tuple[Labels, float]]:
    found: dict[Labels, float] = {}
    for labels, value in samples:
        found[labels] = found.get(labels, 0) + value
    return found.items()


class Metrics:
    """What ``/metrics`` answers."""

    def __init__(self, db: Database, gauges: Gauges) -> None:
        self._db = db
        self._gauges = gauges
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Return no metric: the registry need not ask for all of them to register this."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        scrape = Scrape(self._db, self._gauges)
        for family, samples in _SAMPLES:
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            made = kind(family.name, family.meaning, labels=family.labels)
            for labels, value in samples(scrape):
                made.add_metric(labels, value)
            yield made
        phases = {phase: h.now() for phase, h in scrape.meters.phases.items()}
        yield _histogram(TICKS, phases)
        yield _histogram(STATEMENTS, scrape.statements)


def _histogram(family: Family, found: dict[str, Counted]) -> Metric:
    made = HistogramMetricFamily(family.name, family.meaning, labels=family.labels)
    bounds = [*(f"{bound:g}" for bound in SECONDS), "+Inf"]
    for label, counted in found.items():
        made.add_metric(
            [label],
            buckets=list(zip(bounds, accumulate(counted.buckets), strict=True)),
            sum_value=counted.total,
        )
    return made
