"""The progress of a sink: the last committed frontier in its consistency topic.

Called by a fenced producer alone, so no older instance can add anything. ::

    high    ← the end of the topic, read_uncommitted
    wait    until the stable end is at or beyond ``high``
    records ← read_committed, up to ``high``; the last frontier of this sink

Everything this sink ever wrote lies before ``high`` and is decided. A transaction that some
*other* producer holds open may still hide it, so that one is waited for: it ends, or its
broker ends it after its timeout (``ends``). Waiting is bounded by ``patience``.

Offsets have gaps and end in control records, so nothing is said of "the last record": the end of
the topic is read, then eight times as much, until a frontier is found or the beginning is reached.
Each transaction of a sink writes its frontier, so restart reads little, whatever the history (P5).
Records may be gone below the low watermark: ``is_emptied``, and then None may be a frontier that
was lost (``written`` helps). A frontier that goes back is an error: two sinks, or another program,
write under one name.

Tests: tests/sinks/test_progress.py; on the broker: tests/sinks/test_producer_kafka.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.connectors.kafka.cluster import Span
from reclock.errors import SinkRegressed
from reclock.sinks.consistency import FrontierRecord, read
from reclock.sinks.ends import decided, explained
from reclock.sinks.failure import Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.kafka.cluster import Cluster

FIRST_SUFFIX: Final = 1_024
GROWTH: Final = 8


def last_frontier(
    sink: str, topic: str, uncommitted: Cluster, committed: Cluster, patience: float
) -> FrontierRecord | None:
    """Return the last committed frontier of ``sink``; None if there is none."""
    with explained(topic):
        low, high = decided(topic, 0, uncommitted, committed, patience)
        return _last_frontier(sink, topic, committed, low, high)


def glimpse(sink: str, topic: str, committed: Cluster, patience: float) -> FrontierRecord | None:
    """Return the last frontier that can be seen, without waiting for what is not decided.

    Without a fence it is no base to continue from: a later one may follow at any moment. It serves
    to see whether another sink writes, and to leave it alone.
    """
    with explained(topic):
        low, high = decided(topic, 0, committed, committed, patience)
        return _last_frontier(sink, topic, committed, low, high)


def is_emptied(topic: str, uncommitted: Cluster, committed: Cluster, patience: float) -> bool:
    """Return whether records of a consistency topic are gone."""
    with explained(topic):
        return decided(topic, 0, uncommitted, committed, patience).low > 0


def _last_frontier(
    sink: str, topic: str, committed: Cluster, low: int, high: int
) -> FrontierRecord | None:
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
        size *= GROWTH


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
    hint = "one sink alone may write under this id; drop the sink and create it again"
    return SinkRegressed(message, detail=detail, hint=hint)
