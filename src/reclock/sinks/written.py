"""The data topic of a sink, read back.

Definition. The committed records of the data topic, each with the time in its header. A
timestamp is committed whole, and timestamps in their order, so

    everything up to the last time in the topic is written (``last_time``)
    the topic has the relation as of the sink's frontier (``records``, decoded)

Both hold for a fenced producer alone. A record without the header, or at a time that the sink has
not reached, was written by another program: an error. A partition whose beginning is gone says
nothing of what was there: ``records`` are all of them or an error.

Cost: ``last_time`` reads the ends of partitions, ``records`` the topic.

Tests: tests/sinks/test_written.py; what is made of it: tests/export/test_recover.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.errors import SinkRegressed
from reclock.sinks.ends import decided_spans, explained
from reclock.sinks.failure import Stop
from reclock.sinks.log import TIMESTAMP_HEADER
from reclock.sinks.progress import FIRST_SUFFIX, GROWTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.connectors.kafka.cluster import Cluster, Span

_ANEW: Final = "drop the sink and create it with another topic"


def last_time(topic: str, uncommitted: Cluster, committed: Cluster, patience: float) -> int | None:
    """Return the last time that has a message; None if none ever had one."""
    with explained(topic):
        spans = decided_spans(topic, uncommitted, committed, patience)
        found = [_last_of(topic, committed, span) for span in spans]
    return max((time for time in found if time is not None), default=None)


def records(
    topic: str,
    uncommitted: Cluster,
    committed: Cluster,
    patience: float,
    extra: Sequence[str] = ("key",),
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yield all records, in the order of each partition, and their times."""
    with explained(topic):
        spans = decided_spans(topic, uncommitted, committed, patience)
        for span in spans:
            if span.start > 0:
                message = f'the beginning of topic "{topic}" is gone'
                detail = f"partition {span.partition} begins at offset {span.start}"
                raise Stop(SinkRegressed(message, detail=detail, hint=_ANEW))
        yield from _read(topic, committed, spans, extra)


def _last_of(topic: str, committed: Cluster, span: Span) -> int | None:
    size = FIRST_SUFFIX
    while True:
        tail = span._replace(start=max(span.start, span.stop - size))
        found = [int(times.max()) for _, times in _read(topic, committed, [tail], ()) if len(times)]
        if found:
            return max(found)
        if tail.start == span.start:
            break
        size *= GROWTH
    if span.start == 0:
        return None
    message = f'it is unknown how far topic "{topic}" was written'
    detail = f"partition {span.partition} has no record before its end at offset {span.stop}"
    raise Stop(SinkRegressed(message, detail=detail, hint=_ANEW))


def _read(
    topic: str, committed: Cluster, spans: Sequence[Span], extra: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    filled = [span for span in spans if span.start < span.stop]
    for batch in committed.fetch(topic, filled, (*extra, "headers")) if filled else ():
        yield batch, _times(topic, batch)


def _times(topic: str, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the time in the header of each record."""
    headers = batch.column("headers")
    flat, whose = headers.flatten(), pc.list_parent_indices(headers).to_numpy()
    named = pc.equal(flat.field("key"), TIMESTAMP_HEADER).to_numpy(zero_copy_only=False)
    texts = flat.field("value").filter(pa.array(named)).cast(pa.string())
    owners = whose[named]
    if len(owners) != batch.num_rows or (np.diff(owners) == 0).any() or not _digits(texts):
        at = np.setdiff1d(np.arange(batch.num_rows), owners)
        place = int(at[0]) if len(at) else 0
        message = f'topic "{topic}" has records that no sink wrote'
        offset, partition = batch.column("offset")[place], batch.column("partition")[place]
        detail = f"offset {offset} of partition {partition} has no header {TIMESTAMP_HEADER}"
        raise Stop(SinkRegressed(message, detail=detail, hint=_ANEW))
    times: NDArray[np.int64] = texts.cast(pa.int64()).to_numpy()
    return times


def _digits(texts: pa.Array) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, r"^\d{1,19}$"), min_count=0).as_py())
