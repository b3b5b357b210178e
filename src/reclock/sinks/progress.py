"""Where a sink was left: the last committed frontier in its consistency topic.

Called by a fenced producer alone, so no older instance can add anything. ::

    high    ← the end of the topic, read_uncommitted
    wait    until the stable end is at or beyond ``high``
    records ← read_committed, up to ``high``; the last frontier of this sink

Everything this sink ever wrote lies before ``high`` and is decided. A transaction that some
*other* producer holds open may still hide it, so that one is waited for: it ends, or its
broker ends it after its timeout. Waiting is bounded by ``patience``.

Offsets have gaps and end in control records, so nothing is said of "the last record": the end
of the topic is read, then eight times as much, until a frontier is found or the beginning is
reached. Each transaction of a sink writes its frontier, so restart reads little, whatever the
history (P5). Records may be gone below the low watermark. A frontier that goes back is an
error: two sinks write under one name, or somebody else does.

Tests: tests/sinks/test_progress.py; on the broker: tests/sinks/test_producer_kafka.py.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from reclock.connectors.kafka.cluster import Span
from reclock.errors import (
    PositionsLost,
    SinkRegressed,
    SinkStopped,
    SinkUnavailable,
    SourceRegressed,
    SourceUnavailable,
)
from reclock.sinks.consistency import FrontierRecord, read
from reclock.sinks.failure import Retry, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.kafka.cluster import Cluster, Watermarks
    from reclock.errors import Error

FIRST_SUFFIX: Final = 1_024
_GROWTH: Final = 8
_PAUSE_SECONDS: Final = 0.02


def last_frontier(
    sink: str, topic: str, uncommitted: Cluster, committed: Cluster, patience: float
) -> FrontierRecord | None:
    """Return the last committed frontier of ``sink``; None if there is none."""
    try:
        return _last_frontier(sink, topic, uncommitted, committed, patience)
    except PositionsLost as lost:  # the topic was cut between the question and the reading
        raise Retry(_unavailable(topic, lost)) from lost
    except SourceRegressed as gone:
        message = f'consistency topic "{topic}" of the sink does not exist'
        hint = "make the topic again, or drop the sink and create it anew"
        raise Stop(SinkStopped(message, hint=hint, code="42P01")) from gone
    except SourceUnavailable as silent:
        error = _unavailable(topic, silent)
        refused = silent.code in ("28000", "42501")
        raise (Stop if refused else Retry)(error) from silent


def _last_frontier(
    sink: str, topic: str, uncommitted: Cluster, committed: Cluster, patience: float
) -> FrontierRecord | None:
    deadline = time.monotonic() + patience
    low, high = _ends(uncommitted, topic, deadline)
    while _ends(committed, topic, deadline).high < high:
        if time.monotonic() >= deadline:
            message = f'another producer holds a transaction open in topic "{topic}"'
            hint = "a consistency topic is for sinks alone; it is tried again by itself"
            raise Retry(SinkUnavailable(message, hint=hint))
        time.sleep(_PAUSE_SECONDS)
    size = FIRST_SUFFIX
    while True:
        start = max(low, high - size)
        found = None
        for record in _frontiers(sink, topic, committed, start, high):
            if found is not None and not found.frontier.precedes(record.frontier):
                raise Stop(_regressed(topic, found, record))
            found = record
        if found is not None or start == low:
            return found
        size *= _GROWTH


def _ends(cluster: Cluster, topic: str, deadline: float) -> Watermarks:
    """Return where the topic begins and ends, when it has a leader."""
    while 0 not in (ends := cluster.watermarks(topic, [0])):
        if cluster.describe(topic) is None:
            message = f'topic "{topic}" is gone'
            raise SourceRegressed(message)
        if time.monotonic() >= deadline:
            message = f'topic "{topic}" has no leader'
            raise SourceUnavailable(message, hint="it is tried again by itself")
        time.sleep(_PAUSE_SECONDS)
    return ends[0]


def _frontiers(
    sink: str, topic: str, committed: Cluster, start: int, stop: int
) -> Iterator[FrontierRecord]:
    if start == stop:
        return
    for batch in committed.fetch(topic, [Span(0, start, stop)], ["key"]):
        columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
        for offset, key, value in zip(*columns, strict=True):
            record = read(key, value, f'offset {offset} of topic "{topic}"')
            if isinstance(record, FrontierRecord) and record.sink == sink:
                yield record


def _regressed(topic: str, before: FrontierRecord, after: FrontierRecord) -> SinkRegressed:
    message = f'the progress of sink "{after.sink}" went back'
    detail = f'topic "{topic}" has {before.frontier} and, after it, {after.frontier}'
    hint = "one sink alone may write under this id; drop the sink and create it anew"
    return SinkRegressed(message, detail=detail, hint=hint)


def _unavailable(topic: str, error: Error) -> SinkUnavailable:
    message = f'consistency topic "{topic}" cannot be read'
    detail = error.message if error.detail is None else f"{error.message}: {error.detail}"
    return SinkUnavailable(message, detail=detail, code=error.code, hint=error.hint)
