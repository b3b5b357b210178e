"""A transactional producer over ``MemoryKafka``, whose every step can be made to fail.

``MemoryClient`` has the methods of ``confluent_kafka.Producer`` that sinks use, and raises what
that raises: the protocol of ``reclock.sinks.producer`` runs unchanged. ``Faults`` says which of
the next steps fail, with which error, before the broker did it or after: a reply that is lost.
Where nothing is said, all goes well. ``opened`` makes the producer of a sink.

Messages with keys go to partitions by a hash of the key, others one by one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException

from reclock.errors import SourceRegressed, SourceUnavailable
from reclock.sinks.access import Access
from reclock.sinks.producer import Patience, Producer, Target
from reclock.testing.kafka_upstream import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.testing.kafka_log import MemoryKafka

STEPS: Final = ("init", "begin", "produce", "commit", "abort")

RETRIABLE: Final = KafkaError(KafkaError._TIMED_OUT, "slow", retriable=True)  # noqa: SLF001 - so named by the library
ABORTABLE: Final = KafkaError(KafkaError._MSG_TIMED_OUT, "late", txn_requires_abort=True)  # noqa: SLF001
FATAL: Final = KafkaError(KafkaError._FATAL, "out of order", fatal=True)  # noqa: SLF001
FENCED: Final = KafkaError(KafkaError._FENCED, "fenced", fatal=True)  # noqa: SLF001
WRONG_STATE: Final = KafkaError(KafkaError.INVALID_TXN_STATE, "it is ended already", fatal=True)
TOO_LARGE: Final = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
REFUSED: Final = KafkaError(
    KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed", txn_requires_abort=True
)


class Faults:
    """Which steps fail: the next one of its name, each fault once."""

    def __init__(self) -> None:
        self._before: dict[str, deque[KafkaError]] = defaultdict(deque)
        self._after: dict[str, deque[KafkaError]] = defaultdict(deque)
        self.full = 0
        self.stuck = 0

    def fail(self, step: str, error: KafkaError, *, done: bool = False) -> None:
        """Let the next ``step`` fail, ``done`` or not."""
        assert step in STEPS
        (self._after if done else self._before)[step].append(error)

    def clear(self) -> None:
        """Let everything go well from now on."""
        self._before.clear()
        self._after.clear()
        self.full = self.stuck = 0

    def around(self, step: str, work: Callable[[], None]) -> None:
        """Do the work of a step, or not, and fail as was said."""
        if self._before[step]:
            raise KafkaException(self._before[step].popleft())
        try:
            work()
        except SourceUnavailable:
            raise KafkaException(RETRIABLE) from None
        except SourceRegressed:
            gone = KafkaError(KafkaError._UNKNOWN_TOPIC, "gone")  # noqa: SLF001
            raise KafkaException(gone) from None
        if self._after[step]:
            raise KafkaException(self._after[step].popleft())


class MemoryClient:
    """A producer of one transactional id."""

    def __init__(
        self, kafka: MemoryKafka, transactional_id: str, faults: Faults | None = None
    ) -> None:
        self._kafka = kafka
        self._id = transactional_id
        self._faults = faults or Faults()
        self._epoch = -1
        self._transaction: Any = None
        self._spread = count()

    def init_transactions(self, timeout: float = 0.0) -> None:
        """Fence older producers of the same transactional id."""
        del timeout

        def fence() -> None:
            self._epoch = self._kafka.fence(self._id)

        self._faults.around("init", fence)

    def begin_transaction(self) -> None:
        """Begin."""

        def begin() -> None:
            self._check_epoch()
            self._transaction = self._kafka.begin_as(self._id, self._epoch)

        self._faults.around("begin", begin)

    def produce(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, **rest: Any
    ) -> None:
        """Write a message in the transaction."""
        if self._faults.full:
            self._faults.full -= 1
            raise BufferError

        def write() -> None:
            self._check_epoch()
            chosen = partition if partition >= 0 else self._partition(topic, key)
            headers = tuple(rest.get("headers") or ())
            self._transaction.produce(topic, chosen, Record(value, key, None, headers))

        self._faults.around("produce", write)

    def poll(self, timeout: float = 0.0) -> int:
        """Do nothing: there is no queue."""
        del timeout
        return 0

    def flush(self, timeout: float = 0.0) -> int:
        """Return what is not delivered: as many as ``Faults.stuck`` says, for ever."""
        del timeout
        return self._faults.stuck

    def purge(self) -> None:
        """Do nothing: there is no queue."""

    def commit_transaction(self, timeout: float = 0.0) -> None:
        """Commit; again, if it is committed already."""
        del timeout
        self._end("commit")

    def abort_transaction(self, timeout: float = 0.0) -> None:
        """Abort; again, if it is aborted already."""
        del timeout
        self._end("abort")

    def _end(self, step: str) -> None:
        def end() -> None:
            self._check_epoch()
            if self._transaction.outcome is None:
                getattr(self._transaction, step)()
            elif self._transaction.outcome != (step == "commit"):
                raise KafkaException(WRONG_STATE)

        self._faults.around(step, end)

    def _check_epoch(self) -> None:
        if not self._kafka.is_latest(self._id, self._epoch):
            raise KafkaException(FENCED)

    def _partition(self, topic: str, key: bytes | None) -> int:
        found = self._kafka.described(topic)
        partitions = len(found.partitions) if found else 1
        return (next(self._spread) if key is None else crc32(key)) % partitions


def opened(
    kafka: MemoryKafka,
    target: Target,
    faults: Faults | None = None,
    patience: Patience | None = None,
) -> Producer:
    """Return the producer of a sink."""
    client = MemoryClient(kafka, target.transactional_id, faults)
    uncommitted, committed = kafka.cluster("read_uncommitted"), kafka.cluster("read_committed")
    access = Access(client, [], uncommitted, committed, "memory")
    return Producer(access, target, patience or Patience(call=0.0, progress=0.0))
