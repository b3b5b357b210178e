"""The ends of a sink's topics, once everything before them is decided.

A fenced producer has no older instances that could add anything. What it looks for may still be
hidden by an open transaction of *another* producer, since ``read_committed`` reading stops at
the first open one. So the end is asked for ``read_uncommitted``, and waited for::

    high ← the end, read_uncommitted
    wait until the stable end is at or beyond high, ``patience`` seconds at most

``explained`` says what an error of reading means for a sink: try again, or stop.

Tests: tests/sinks/test_progress.py, tests/sinks/test_written.py.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reclock.connectors.kafka.cluster import Span
from reclock.errors import (
    PositionsLost,
    SinkStopped,
    SinkUnavailable,
    SourceRegressed,
    SourceUnavailable,
)
from reclock.sinks.failure import Retry, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.kafka.cluster import Cluster, Watermarks
    from reclock.errors import Error

_PAUSE_SECONDS: Final = 0.02


def decided(
    topic: str, partition: int, uncommitted: Cluster, committed: Cluster, patience: float
) -> Watermarks:
    """Return where a partition begins and ends, when no transaction is open before its end."""
    deadline = time.monotonic() + patience
    ends = _ends(uncommitted, topic, partition, deadline)
    while _ends(committed, topic, partition, deadline).high < ends.high:
        if time.monotonic() >= deadline:
            message = f'another producer holds a transaction open in topic "{topic}"'
            hint = "the topics of a sink are for sinks alone; it is tried again by itself"
            raise Retry(SinkUnavailable(message, hint=hint))
        time.sleep(_PAUSE_SECONDS)
    return ends


def decided_spans(
    topic: str, uncommitted: Cluster, committed: Cluster, patience: float
) -> list[Span]:
    """Return what every partition of a topic has, when all of it is decided."""
    found = uncommitted.describe(topic)
    if found is None:
        raise _gone(topic)
    return [
        Span(partition, *decided(topic, partition, uncommitted, committed, patience))
        for partition in found.partitions
    ]


@contextmanager
def explained(topic: str) -> Iterator[None]:
    """Say what an error of reading ``topic`` means for the sink that reads it."""
    try:
        yield
    except PositionsLost as lost:  # the topic was cut between the question and the reading
        raise Retry(_unavailable(topic, lost)) from lost
    except SourceRegressed as gone:
        message = f'topic "{topic}" of the sink does not exist'
        hint = "make the topic again, or drop the sink and create it again"
        raise Stop(SinkStopped(message, hint=hint, code="42P01")) from gone
    except SourceUnavailable as silent:
        error = _unavailable(topic, silent)
        refused = silent.code in ("28000", "42501")
        raise (Stop if refused else Retry)(error) from silent


def _ends(cluster: Cluster, topic: str, partition: int, deadline: float) -> Watermarks:
    """Return where a partition begins and ends, when it has a leader."""
    while partition not in (ends := cluster.watermarks(topic, [partition])):
        if cluster.describe(topic) is None:
            raise _gone(topic)
        if time.monotonic() >= deadline:
            message = f'topic "{topic}" has no leader'
            raise SourceUnavailable(message, hint="it is tried again by itself")
        time.sleep(_PAUSE_SECONDS)
    return ends[partition]


def _gone(topic: str) -> SourceRegressed:
    return SourceRegressed(f'topic "{topic}" is gone')


def _unavailable(topic: str, error: Error) -> SinkUnavailable:
    message = f'topic "{topic}" of the sink cannot be read'
    detail = error.message if error.detail is None else f"{error.message}: {error.detail}"
    hint = error.hint or "it is tried again by itself"
    return SinkUnavailable(message, detail=detail, code=error.code, hint=hint)
