"""What the producer of a sink must do, on a real broker and on the log in memory.

Each case is a function of a ``SinkKit``: the broker as a test drives it, and how a sink's
producer is made. Topics are new in each case, so that cases can share a broker. What counts is
what a separate ``read_committed`` reader finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from time import sleep
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.connectors.kafka.cluster import Span
from reclock.errors import Fenced as FencedError
from reclock.errors import MalformedMessage, SinkRegressed
from reclock.failpoints import FailpointRaised, armed
from reclock.sinks.consistency import FrontierRecord, Record, frontier_record, transaction_records
from reclock.sinks.failure import Retry, SendFailed, Stop
from reclock.sinks.log import TIMESTAMP_HEADER, Message, Messages
from reclock.sinks.producer import Target
from reclock.testing.kafka_upstream import Record as Written
from reclock.time.frontier import CLOSED, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from reclock.sinks.log import Fenced, Unfenced
    from reclock.testing.kafka_upstream import Upstream

_numbers = count()
_PATIENCE: Final = 1_000


@dataclass(frozen=True)
class SinkKit:
    """A broker, and how the producer of a sink there is made."""

    upstream: Upstream
    open: Callable[[Target], Unfenced]

    def target(self, partitions: int = 1, consistency: str | None = None) -> Target:
        """Return a new sink with topics of its own."""
        number = next(_numbers)
        shared = consistency or self.upstream.create_topic()
        topic = self.upstream.create_topic(partitions)
        return Target(f"u{number}", topic, shared, f"sink-{number}-{topic}")


if TYPE_CHECKING:
    Case: TypeAlias = Callable[[SinkKit], None]


class Seen(NamedTuple):
    """A committed data message, and where it is."""

    partition: int
    message: Message


def chunk(*messages: tuple[int, bytes | None, bytes | None]) -> Messages:
    """Return (time, key, value) as one chunk."""
    times, keys, values = zip(*messages, strict=True)
    kept = None if all(key is None for key in keys) else pa.array(keys, pa.binary())
    return Messages(np.array(times), kept, pa.array(values, pa.binary()))


def committed(upstream: Upstream, topic: str, *, settled: bool = True) -> list[Seen]:
    """Return what a ``read_committed`` reader sees of a data topic, by partition and offset.

    A broker answers a commit before its markers are in the log. ``settled`` waits for them.
    """
    cluster = upstream.cluster()
    found = cluster.describe(topic)
    assert found is not None
    loose = upstream.cluster("read_uncommitted")
    for _ in range(_PATIENCE):
        ends = cluster.watermarks(topic, found.partitions)
        whole = loose.watermarks(topic, found.partitions)
        led = len(ends) == len(whole) == len(found.partitions)
        if led and not (settled and any(e.high < whole[p].high for p, e in ends.items())):
            break
        sleep(0.01)
    spans = [Span(p, e.low, e.high) for p, e in ends.items() if e.low < e.high]
    seen: dict[tuple[int, int], Message] = {}
    for batch in cluster.fetch(topic, spans, ["key", "headers"]) if spans else ():
        for row in batch.to_pylist():
            headers = {h["key"]: h["value"] for h in row["headers"] or ()}
            message = Message(int(headers[TIMESTAMP_HEADER]), row["key"], row["value"])
            seen[row["partition"], row["offset"]] = message
    return [Seen(partition, seen[partition, offset]) for partition, offset in sorted(seen)]


def messages_of(kit: SinkKit, target: Target, *, settled: bool = True) -> list[Message]:
    """Return the committed messages of a sink, by partition and offset."""
    return [seen.message for seen in committed(kit.upstream, target.topic, settled=settled)]


def failing(kind: type[SendFailed], call: Callable[[], object]) -> SendFailed:
    """Assert that ``call`` raises exactly ``kind``, and return it."""
    try:
        call()
    except SendFailed as failed:
        if type(failed) is kind:
            return failed
        message = f"{failed!r} is not {kind.__name__}"
        raise AssertionError(message) from failed
    message = f"{kind.__name__} was not raised"
    raise AssertionError(message)


def _send(fenced: Fenced, target: Target, time: int, *values: bytes) -> None:
    """Commit one time: its messages, BEGIN and END, and the frontier after it."""
    records: list[Record] = []
    chunks: Sequence[Messages] = []
    if values:
        chunks = [chunk(*((time, value, value) for value in values))]
        records += transaction_records(time, target.topic, len(values))
    fenced.send(chunks, [*records, frontier_record(target.sink, at(time + 1), {"u1": time})])


def a_new_sink_has_no_progress(kit: SinkKit) -> None:
    """Check progress before anything was committed, and after."""
    target = kit.target()
    fenced = kit.open(target).fence()
    assert fenced.progress() is None
    _send(fenced, target, 4, b"a")
    expected = FrontierRecord(target.sink, at(5), {"u1": 4})
    assert fenced.progress() == expected
    assert kit.open(target).fence().progress() == expected
    fenced = kit.open(target).fence()
    fenced.send([], [frontier_record(target.sink, CLOSED, {})])
    assert kit.open(target).fence().progress() == FrontierRecord(target.sink, CLOSED, {})


def messages_come_as_they_were_sent(kit: SinkKit) -> None:
    """Check keys, tombstones, headers, several chunks and many times in one transaction."""
    target = kit.target()
    sent = [
        (3, b"k", b"1"), (3, b"l", "Größe 🙂".encode()), (4, b"k", None), (4, b"", b""),
        (9, b"k", b"x" * 100_000), (10, None, b"no key"), (2**62, b"k", b"late"),
    ]  # fmt: skip
    fenced = kit.open(target).fence()
    fenced.send([chunk(*sent[:3]), chunk(*sent[3:6]), chunk(*sent[6:])], [])
    assert messages_of(kit, target) == [Message(*m) for m in sent]
    keyless = chunk((2**62, None, b"a"), (2**62 + 1, None, b"b"))
    fenced.send(iter([keyless]), [])
    assert messages_of(kit, target)[-2:] == list(keyless)


def one_key_keeps_its_order(kit: SinkKit) -> None:
    """Check that a key is in one partition, in the order it was sent, over transactions."""
    target = kit.target(partitions=3)
    fenced = kit.open(target).fence()
    for time in range(1, 4):
        messages = [(time, b"%d" % (n % 7), b"%d.%d" % (time, n)) for n in range(40)]
        fenced.send([chunk(*messages)], [])
    seen = committed(kit.upstream, target.topic)
    for key in {s.message.key for s in seen}:
        mine = [s for s in seen if s.message.key == key]
        assert len({s.partition for s in mine}) == 1
        sent = [b"%d.%d" % (t, n) for t in range(1, 4) for n in range(40) if b"%d" % (n % 7) == key]
        assert [s.message.value for s in mine] == sent
    assert len({s.partition for s in seen}) > 1


def data_and_progress_come_together(kit: SinkKit) -> None:
    """Check that nothing is seen before the commit, and an abort leaves nothing."""
    target = kit.target(partitions=2)
    fenced = kit.open(target).fence()
    _send(fenced, target, 1, b"first")
    assert len(messages_of(kit, target)) == 1, "what is looked for below can be seen by now"
    looks: list[object] = []

    def look() -> None:
        looks.append(messages_of(kit, target, settled=False))

    points = ("sink.produce.after", "sink.commit.before")
    with armed(dict.fromkeys(points, look)):
        _send(fenced, target, 2, *(b"%d" % n for n in range(20)))
    assert looks == [[Message(1, b"first", b"first")]] * 2
    assert len(messages_of(kit, target)) == 21
    for point in ("sink.begin.before", *points, "sink.progress.before"):
        with armed({point: "raise"}):
            _raises(FailpointRaised, lambda: _send(fenced, target, 3, b"never"))
    assert len(messages_of(kit, target)) == 21
    assert fenced.progress() == FrontierRecord(target.sink, at(3), {"u1": 2})
    _send(fenced, target, 3, b"at last")
    assert len(messages_of(kit, target)) == 22


def nothing_to_send_is_no_transaction(kit: SinkKit) -> None:
    """Check that empty sends leave no trace, not even control records."""
    target = kit.target()
    fenced = kit.open(target).fence()
    empty = Messages(np.empty(0, np.int64), None, pa.array([], pa.binary()))
    for chunks in ([], [empty], [empty, empty]):
        fenced.send(chunks, [])
    for topic in (target.topic, target.consistency):
        assert kit.upstream.cluster("read_uncommitted").watermarks(topic, [0])[0].high == 0


def idle_progress_needs_no_data(kit: SinkKit) -> None:
    """Check frontier records alone, also before the first data."""
    target = kit.target()
    fenced = kit.open(target).fence()
    for time in range(1, 5):
        _send(fenced, target, time)
    assert messages_of(kit, target) == []
    assert kit.open(target).fence().progress() == FrontierRecord(target.sink, at(5), {"u1": 4})


def a_zombie_is_barred(kit: SinkKit) -> None:
    """Check an older instance before, inside and after a transaction of its own."""
    target = kit.target()
    old = kit.open(target).fence()
    _send(old, target, 1, b"old")
    new = kit.open(target).fence()
    assert new.progress() == FrontierRecord(target.sink, at(2), {"u1": 1})
    error = failing(Stop, lambda: _send(old, target, 2, b"zombie")).error
    assert isinstance(error, FencedError)
    _send(new, target, 2, b"new")
    third: list[Fenced] = []
    with armed({"sink.commit.before": lambda: third.append(kit.open(target).fence())}):
        error = failing(Stop, lambda: _send(new, target, 3, b"zombie")).error
    assert isinstance(error, FencedError)
    assert third[0].progress() == FrontierRecord(target.sink, at(3), {"u1": 2})
    _send(third[0], target, 3, b"newest")
    assert [m.value for m in messages_of(kit, target)] == [b"old", b"new", b"newest"]


def a_lost_reply_is_found_out(kit: SinkKit) -> None:
    """Check that what was committed without our knowing is known after a fence."""
    target = kit.target()
    fenced = kit.open(target).fence()
    with armed({"sink.commit.after": "raise"}):
        _raises(FailpointRaised, lambda: _send(fenced, target, 1, b"a"))
    anew = kit.open(target).fence()
    assert anew.progress() == FrontierRecord(target.sink, at(2), {"u1": 1})
    assert [m.value for m in messages_of(kit, target)] == [b"a"]


def sinks_share_a_consistency_topic(kit: SinkKit) -> None:
    """Check that each finds its own progress, and strangers' records are none."""
    one = kit.target()
    other = kit.target(consistency=one.consistency)
    first, second = kit.open(one).fence(), kit.open(other).fence()
    kit.upstream.produce(one.consistency, 0, Written(b"?", b"stranger"))
    for time in range(1, 4):
        _send(first, one, time)
    assert second.progress() is None
    _send(second, other, 7)
    _send(first, one, 4)
    assert second.progress() == FrontierRecord(other.sink, at(8), {"u1": 7})
    assert first.progress() == FrontierRecord(one.sink, at(5), {"u1": 4})


def progress_waits_for_open_transactions(kit: SinkKit) -> None:
    """Check that what another producer hides is not taken for missing."""
    target = kit.target()
    fenced = kit.open(target).fence()
    _send(fenced, target, 1)
    stranger = kit.upstream.begin()
    stranger.produce(target.consistency, 0, Written(b"?", b"stranger"))
    _send(fenced, target, 2)
    anew = kit.open(target).fence()
    assert "open" in failing(Retry, anew.progress).error.message
    stranger.abort()
    assert anew.progress() == FrontierRecord(target.sink, at(3), {"u1": 2})


def progress_survives_compaction_and_truncation(kit: SinkKit) -> None:
    """Check a topic with gaps, and one that begins late."""
    target = kit.target(consistency=kit.upstream.create_topic(compacted=True))
    fenced = kit.open(target).fence()
    for time in range(1, 8):
        _send(fenced, target, time, b"%d" % time)
    kit.upstream.compact(target.consistency)
    assert fenced.progress() == FrontierRecord(target.sink, at(8), {"u1": 7})
    target = kit.target()
    fenced = kit.open(target).fence()
    for time in range(1, 8):
        _send(fenced, target, time, b"%d" % time)
    expected = FrontierRecord(target.sink, at(8), {"u1": 7})
    assert fenced.progress() == expected
    end = kit.upstream.cluster().watermarks(target.consistency, [0])[0].high
    kit.upstream.truncate(target.consistency, 0, end - 3)
    assert fenced.progress() == expected
    kit.upstream.truncate(target.consistency, 0, end)
    assert fenced.progress() is None
    _send(fenced, target, 8)
    assert fenced.progress() == FrontierRecord(target.sink, at(9), {"u1": 8})


def progress_that_goes_back_is_an_error(kit: SinkKit) -> None:
    """Check a frontier after a later one, and a record that is none."""
    target = kit.target()
    fenced = kit.open(target).fence()
    _send(fenced, target, 7)
    fenced.send([], [frontier_record(target.sink, at(5), {})])
    assert isinstance(failing(Stop, fenced.progress).error, SinkRegressed)
    other = kit.target()
    fenced = kit.open(other).fence()
    kit.upstream.produce(
        other.consistency, 0, Written(b"{}", frontier_record(other.sink, at(1), {}).key)
    )
    error = _raises(MalformedMessage, fenced.progress)
    assert "offset 0" in str(error.detail)


def _raises(
    kind: type[FailpointRaised | MalformedMessage], call: Callable[[], object]
) -> FailpointRaised | MalformedMessage:
    try:
        call()
    except kind as raised:
        return raised
    message = f"{kind.__name__} was not raised"
    raise AssertionError(message)


CASES: Final[Iterable[Case]] = (
    a_new_sink_has_no_progress,
    messages_come_as_they_were_sent,
    one_key_keeps_its_order,
    data_and_progress_come_together,
    nothing_to_send_is_no_transaction,
    idle_progress_needs_no_data,
    a_zombie_is_barred,
    a_lost_reply_is_found_out,
    sinks_share_a_consistency_topic,
    progress_waits_for_open_transactions,
    progress_survives_compaction_and_truncation,
    progress_that_goes_back_is_an_error,
)
