"""The producer over the log in memory: the conformance suite, and every error at every step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from conformance.sink import CASES, SinkKit, chunk, failing, messages_of
from reclock.errors import Fenced, OutcomeUnknown, SinkStopped, SinkUnavailable
from reclock.failpoints import armed
from reclock.sinks.consistency import frontier_record
from reclock.sinks.failure import NewProducer, Retry, SendFailed, Stop, TooLong
from reclock.sinks.log import Message
from reclock.sinks.producer import Patience
from reclock.testing import kafka_producer as fake
from reclock.testing.kafka_log import MemoryKafka
from reclock.time.frontier import at

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from conformance.sink import Case
    from reclock.sinks.producer import FencedProducer, Target


@pytest.fixture
def memory() -> MemoryKafka:
    return MemoryKafka()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_conformance(case: Case, memory: MemoryKafka) -> None:
    case(SinkKit(memory, partial(fake.opened, memory)))


class Sink:
    """A sink, whose next steps may fail."""

    def __init__(self, memory: MemoryKafka, patience: Patience | None = None) -> None:
        self.kafka = memory
        self.patience = patience
        self.faults = fake.Faults()
        self.kit = SinkKit(memory, self._open)
        self.target = self.kit.target()
        self.fenced: FencedProducer = self._open(self.target).fence()

    def _open(self, target: Target) -> fake.Producer:
        return fake.opened(self.kafka, target, self.faults, self.patience)

    def send(self) -> None:
        messages = [(1, b"k", b"v"), (1, b"l", b"w")]
        self.fenced.send([chunk(*messages)], [frontier_record(self.target.sink, at(2), {})])

    @property
    def written(self) -> bool:
        """Whether the transaction counts: all of it, or nothing."""
        progress = self._open(self.target).fence().progress()
        messages = messages_of(self.kit, self.target)
        assert messages in ([], [Message(1, b"k", b"v"), Message(1, b"l", b"w")])
        assert (progress is not None) == bool(messages)
        return bool(messages)


class Row(NamedTuple):
    step: str
    error: KafkaError
    done: bool
    raised: type[SendFailed]
    shown: type[Exception]
    written: bool


TABLE = [
    Row("begin", fake.RETRIABLE, False, Retry, SinkUnavailable, False),
    Row("begin", fake.FATAL, False, NewProducer, SinkUnavailable, False),
    Row("begin", fake.FENCED, False, Stop, Fenced, False),
    Row("produce", fake.RETRIABLE, False, Retry, SinkUnavailable, False),
    Row("produce", fake.ABORTABLE, True, Retry, SinkUnavailable, False),
    Row("produce", fake.TOO_LARGE, False, Stop, SinkStopped, False),
    Row("produce", fake.REFUSED, False, Stop, SinkStopped, False),
    Row("produce", fake.FATAL, False, NewProducer, SinkUnavailable, False),
    Row("produce", fake.FENCED, False, Stop, Fenced, False),
    Row("commit", fake.RETRIABLE, False, NewProducer, OutcomeUnknown, False),
    Row("commit", fake.RETRIABLE, True, NewProducer, OutcomeUnknown, True),
    Row("commit", fake.ABORTABLE, False, Retry, SinkUnavailable, False),
    Row("commit", fake.REFUSED, False, Stop, SinkStopped, False),
    Row("commit", fake.FATAL, False, NewProducer, SinkUnavailable, False),
    Row("commit", fake.FATAL, True, NewProducer, SinkUnavailable, True),
    Row("commit", fake.FENCED, False, Stop, Fenced, False),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.step}-{row.error.name()}")
def test_every_error_at_every_step(memory: MemoryKafka, row: Row) -> None:
    sink = Sink(memory)
    sink.faults.fail(row.step, row.error, done=row.done)
    failed = failing(row.raised, sink.send)
    assert type(failed.error) is row.shown
    assert failed.error.detail
    assert failed.error.hint
    if row.raised is Retry:
        sink.send()
        assert sink.written
    else:
        assert sink.written == row.written


@pytest.mark.parametrize("step", ["produce", "commit"])
def test_an_abort_that_fails_needs_a_new_producer(memory: MemoryKafka, step: str) -> None:
    for error, kind in (
        (fake.RETRIABLE, NewProducer),
        (fake.FATAL, NewProducer),
        (fake.FENCED, Stop),
    ):
        for done in (False, True):
            sink = Sink(memory)
            sink.faults.fail(step, fake.ABORTABLE)
            sink.faults.fail("abort", error, done=done)
            failing(kind, sink.send)
            assert not sink.written


def test_a_call_is_made_again_while_there_is_patience(memory: MemoryKafka) -> None:
    sink = Sink(memory, Patience(call=5.0))
    for step in ("begin", "commit", "commit"):
        sink.faults.fail(step, fake.RETRIABLE)
    sink.faults.fail("commit", fake.RETRIABLE, done=True)
    sink.send()
    assert sink.written


def test_a_full_queue_is_waited_for(memory: MemoryKafka) -> None:
    sink = Sink(memory)
    sink.faults.full = 3
    sink.send()
    assert sink.written


def test_a_transaction_that_takes_too_long_is_given_up(memory: MemoryKafka) -> None:
    sink = Sink(memory, Patience(transaction=0.0, call=0.0))
    error = failing(TooLong, sink.send).error
    assert "transaction_timeout" in str(error.hint)
    assert not sink.written


def test_a_timeout_is_told_from_a_fence_by_the_time_it_took(memory: MemoryKafka) -> None:
    for transaction, kind in ((60.0, Stop), (1e-9, NewProducer)):
        sink = Sink(memory, Patience(transaction=transaction, call=0.0))
        sink.fenced._check_time = lambda: None  # type: ignore[method-assign]
        with armed({"sink.commit.before": partial(memory.time_out, sink.target.transactional_id)}):
            failing(kind, sink.send)
        assert not sink.written


def test_fencing_that_fails(memory: MemoryKafka) -> None:
    for error, kind in (
        (fake.RETRIABLE, NewProducer),
        (fake.FATAL, NewProducer),
        (fake.REFUSED, Stop),
    ):
        sink = Sink(memory)
        sink.faults.fail("init", error)
        failing(kind, sink.kit.open(sink.target).fence)


def test_a_broker_that_stops(memory: MemoryKafka) -> None:
    sink = Sink(memory)
    memory.running = False
    failing(NewProducer, sink.send)
    failing(Retry, sink.fenced.progress)
    memory.running = True
    assert not sink.written


def test_a_topic_that_is_gone(memory: MemoryKafka) -> None:
    sink = Sink(memory)
    memory.delete_topic(sink.target.topic)
    assert failing(Stop, sink.send).error.code == "42P01"
    memory.delete_topic(sink.target.consistency)
    assert failing(Stop, sink.fenced.progress).error.code == "42P01"


def test_messages_that_stay_undelivered_are_aborted(memory: MemoryKafka) -> None:
    sink = Sink(memory)
    sink.faults.stuck = 2
    assert "2 messages" in str(failing(Retry, sink.send).error.detail)
    sink.faults.stuck = 0
    sink.send()
    assert sink.written


def test_messages_of_a_topic_that_is_gone_stay_undelivered(memory: MemoryKafka) -> None:
    sink = Sink(memory)
    sink.faults.stuck = 2
    gone = partial(memory.delete_topic, sink.target.consistency)
    with armed({"sink.progress.before": gone}):
        assert failing(Stop, sink.send).error.code == "42P01"
