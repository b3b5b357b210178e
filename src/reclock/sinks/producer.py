"""One sink's producer: fence, read progress, and send whole transactions.

It works with a ``Client`` (``access``), real or in memory; ``connect`` makes the real one. A
transaction, step by step, ▸ being failpoints::

      ▸ sink.begin.before
    begin                             nothing is visible until the commit
    produce the data messages
      ▸ sink.produce.after  ▸ sink.progress.before
    produce the consistency records   in the same transaction
    flush                             all of it is with the brokers
      ▸ sink.commit.before
    commit                            both are visible, at once
      ▸ sink.commit.after

Invariants. A transaction that is not committed is aborted before ``send`` raises, unless the
producer is lost, which aborts it too: by the fence of the next. A transaction that would outlive
its timeout is given up by us, with what to change, before the broker does it without a word.

Order. The client is idempotent, so messages of one partition keep their order; messages of one
key go to one partition, by the hash of the key that Java's producer uses (``murmur2``), so
consumers that join topics by partition find keys where they expect them. Messages without keys
are spread.

Cost: one Python call a message; the client's queue is bounded, and ``send`` waits for room in it.

Tests: tests/sinks/test_producer.py, tests/sinks/test_producer_kafka.py (marked ``kafka``).
Speed: benchmarks/sink_encode.py.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from confluent_kafka import KafkaError, KafkaException

from reclock.errors import InvalidValue, SinkStopped, SourceUnavailable
from reclock.failpoints import hit
from reclock.sinks.failure import (
    NewProducer,
    Retry,
    Stop,
    TooLong,
    Verdict,
    explained,
    unknown,
    verdict,
)
from reclock.sinks.log import TIMESTAMP_HEADER
from reclock.sinks.progress import is_emptied, last_frontier
from reclock.sinks.written import last_time, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from reclock.sinks.access import Access, Headers
    from reclock.sinks.consistency import FrontierRecord, Record
    from reclock.sinks.log import Messages

SHARE_OF_TIMEOUT: Final = 0.8
"""How much of a transaction's timeout may pass before the commit is sent."""

_WAIT_SECONDS: Final = 0.1
_SLICE_SECONDS: Final = 2.0
"""How long a call may take before it is looked at why it takes so long."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a sink writes to, and under which names.

    ``sink`` is the key of its progress; ``transactional_id`` is what fences: of all sinks of all
    installations at these brokers, this one's alone.
    """

    sink: str
    topic: str
    consistency: str
    transactional_id: str


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take, in seconds; ``transaction`` is the broker's timeout."""

    transaction: float = 60.0
    call: float = 30.0
    progress: float = 30.0


class Producer:
    """An ``Unfenced`` producer."""

    def __init__(self, access: Access, target: Target, patience: Patience | None = None) -> None:
        self._access: Access | None = access
        self._target = target
        self._patience = patience or Patience()

    def fence(self) -> FencedProducer:
        """Bar all older instances and end their transactions; once."""
        access, self._access = self._access, None
        if access is None:
            message = "a producer fences once"
            raise InvalidValue(message)
        fenced = FencedProducer(access, self._target, self._patience)
        try:
            fenced.call(access.client.init_transactions)
        except _Failed as failed:
            error = explained(failed.error, access.brokers, access.said(failed.error))
            lasting = failed.verdict in (Verdict.STOP, Verdict.FENCED)
            raise (Stop if lasting else NewProducer)(error) from None
        return fenced


class _Failed(Exception):
    """A call failed, and was not made again."""

    def __init__(self, error: KafkaError, decision: Verdict) -> None:
        super().__init__(str(error))
        self.error = error
        self.verdict = decision


class FencedProducer:
    """A ``Fenced`` producer; made by ``Producer.fence`` alone."""

    def __init__(self, access: Access, target: Target, patience: Patience) -> None:
        self._access = access
        self._target = target
        self._patience = patience
        self._began: float | None = None

    def progress(self) -> FrontierRecord | None:
        """Return the last committed frontier of this sink; None if it never committed one."""
        where = self._target.consistency
        uncommitted, committed = self._access.uncommitted, self._access.committed
        return last_frontier(
            self._target.sink, where, uncommitted, committed, self._patience.progress
        )

    def is_emptied(self) -> bool:
        """Return whether records of the consistency topic are gone, maybe this sink's."""
        uncommitted, committed = self._access.uncommitted, self._access.committed
        where = self._target.consistency
        return is_emptied(where, uncommitted, committed, self._patience.progress)

    def last_time(self) -> int | None:
        """Return the last time that has a committed message; None if none ever had one."""
        uncommitted, committed = self._access.uncommitted, self._access.committed
        return last_time(self._target.topic, uncommitted, committed, self._patience.progress)

    def records(self) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yield the committed messages of all partitions, each with its time."""
        uncommitted, committed = self._access.uncommitted, self._access.committed
        return records(self._target.topic, uncommitted, committed, self._patience.progress)

    def send(self, chunks: Iterable[Messages], records: Sequence[Record]) -> None:
        """Commit messages and records in one transaction; nothing to commit, no transaction."""
        stream = iter(chunks)
        first = next((chunk for chunk in stream if len(chunk)), None)
        if first is None and not records:
            return
        hit("sink.begin.before")
        self._access.failed.clear()
        try:
            self.call(lambda _: self._access.client.begin_transaction())
        except _Failed as failed:
            self._raise(failed)
        self._began = time.monotonic()
        try:
            if first is not None:
                self._produce(first)
            for chunk in stream:
                self._produce(chunk)
            hit("sink.produce.after")
            hit("sink.progress.before")
            for key, value in records:
                self._put(self._target.consistency, value, key, partition=0)
            self._flush()
            hit("sink.commit.before")
        except _Failed as failed:
            self._raise(failed)
        except Exception:
            self._abort()
            raise
        self._commit()
        hit("sink.commit.after")

    def close(self) -> None:
        """Drop what is queued; the client ends with its last user."""
        with suppress(KafkaException):
            self._access.client.purge()

    def _produce(self, messages: Messages) -> None:
        produce, topic = self._access.client.produce, self._target.topic
        for at, run in messages.runs():
            headers: Headers = [(TIMESTAMP_HEADER, b"%d" % at)]
            keys = [None] * len(run) if run.keys is None else run.keys.to_pylist()
            for key, value in zip(keys, run.values.to_pylist(), strict=True):
                try:  # not ``_put``: a call more for each message is a tenth of its cost
                    produce(topic, value, key, headers=headers)
                except (BufferError, KafkaException) as error:
                    self._put(topic, value, key, headers=headers, after=error)
        self._serve(self._access.client.poll, 0)

    def _put(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        partition: int = -1,
        headers: Headers | None = None,
        after: Exception | None = None,
    ) -> None:
        """Put a message into the queue, when there is room; ``after`` is why it is not there."""
        while True:
            try:
                if after is not None:
                    raise after
                return self._access.client.produce(topic, value, key, partition, headers=headers)
            except BufferError:
                after = None
                self._serve(self._access.client.poll, _WAIT_SECONDS)
            except KafkaException as error:
                raise self._failed(error.args[0], message=True) from None

    def _flush(self) -> None:
        """Wait until the brokers have all messages, as long as they take some now and then."""
        left = self._serve(self._access.client.flush, _SLICE_SECONDS)
        deadline = time.monotonic() + self._patience.call
        while left:
            before, left = left, self._serve(self._access.client.flush, _SLICE_SECONDS)
            if left < before:
                deadline = time.monotonic() + self._patience.call
            elif time.monotonic() >= deadline:
                reason = f"{left} messages could not be delivered"
                code = self._missing_topic() or KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - so named by the library
                raise self._failed(KafkaError(code, reason), message=True)

    def _missing_topic(self) -> int | None:
        """Return the code for a topic that is gone, which the client only waits for."""
        topics = (self._target.topic, self._target.consistency)
        with suppress(SourceUnavailable):
            if any(self._access.uncommitted.describe(topic) is None for topic in topics):
                return KafkaError.UNKNOWN_TOPIC_OR_PART
        return None

    def _serve(self, step: Callable[[float], int], seconds: float) -> int:
        """Let the client work and report; look at what it said and how long all takes."""
        try:
            done = step(seconds)
        except KafkaException as error:
            raise self._failed(error.args[0], message=True) from None
        if self._access.failed:
            raise self._failed(self._access.failed[0], message=True)
        self._check_time()
        return done

    def _check_time(self) -> None:
        """Give up what the broker would end before it is committed."""
        allowed = self._patience.transaction * SHARE_OF_TIMEOUT
        if self._began is not None and time.monotonic() - self._began > allowed:
            message = "a transaction of the sink takes longer than its timeout"
            detail = f"{allowed:g} s of {self._patience.transaction:g} s are over"
            hint = (
                "raise the sink's transaction_timeout, and transaction.max.timeout.ms of the "
                "brokers if it is lower; or begin without a snapshot: one timestamp is one "
                "transaction, so that readers see all of it or nothing"
            )
            raise TooLong(SinkStopped(message, detail=detail, hint=hint, code="54000"))

    def _commit(self) -> None:
        try:
            self.call(self._access.client.commit_transaction)
            self._began = None
        except _Failed as failed:
            if failed.verdict is Verdict.AGAIN:
                said = self._access.said(failed.error)
                raise NewProducer(unknown(self._access.brokers, said)) from None
            self._raise(failed)

    def _abort(self) -> None:
        """Abort, or leave it to the fence of a new producer."""
        try:
            self.call(self._access.client.abort_transaction)
            self._began = None
        except _Failed as failed:
            if failed.verdict is Verdict.FENCED:
                self._raise(failed)
            said = self._access.said(failed.error)
            error = explained(failed.error, self._access.brokers, said)
            raise NewProducer(error) from None

    def _raise(self, failed: _Failed) -> NoReturn:
        """End the transaction, if there may be one, and raise what the error means."""
        reported = failed.error
        if failed.verdict is Verdict.ABORT and self._access.failed:
            reported = self._access.failed[0]  # why, where the commit only says that
        decision = failed.verdict
        said, overdue = self._access.said(reported), decision is not Verdict.FENCED
        error = explained(reported, self._access.brokers, said, overdue=overdue)
        if decision is Verdict.FENCED:
            raise Stop(error) from None
        if decision is Verdict.RENEW:
            raise NewProducer(error) from None
        if self._began is not None:
            self._abort()
        lasting = decision is Verdict.STOP or verdict(reported) is Verdict.STOP
        raise (Stop if lasting else Retry)(error) from None

    def call(self, step: Callable[[float], None]) -> None:
        """Make a call that may be made again, until it succeeds or patience ends."""
        deadline = time.monotonic() + self._patience.call
        while True:
            try:
                left = deadline - time.monotonic()
                return step(min(max(left, _WAIT_SECONDS), _SLICE_SECONDS))
            except KafkaException as error:
                with suppress(KafkaException):  # it says the same again
                    self._access.client.poll(0)
                failed = self._failed(self._access.refusal() or error.args[0])
                if failed.verdict is not Verdict.AGAIN or time.monotonic() >= deadline:
                    raise failed from None

    def _failed(self, error: KafkaError, *, message: bool = False) -> _Failed:
        open_for = 0.0 if self._began is None else time.monotonic() - self._began
        overdue = self._began is not None and open_for >= self._patience.transaction
        return _Failed(error, verdict(error, overdue=overdue, message=message))
