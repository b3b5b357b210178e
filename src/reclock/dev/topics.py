"""Topics at the prompt: make one, write lines into it, read it.

For trying things out, against the broker of ``reclock dev kafka`` or any other. A line is a record;
with a separator it is a key and a value, and nothing after the separator is a null value, which
deletes. Reading is ``read_committed``, from the first record on, to where the topic ended when the
reading began, or on and on.

Tests: tests/dev/test_topics.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined] # public

from reclock.errors import BrokerFailed, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.1


class Record(NamedTuple):
    """What a topic has at a place; None is null."""

    key: bytes | None
    value: bytes | None


def create_topic(address: str, name: str, partitions: int) -> bool:
    """Make a topic; return whether it is new: one that is there stays as it is."""
    admin = AdminClient(_client(address))
    made = admin.create_topics([NewTopic(name, partitions)], request_timeout=_SECONDS)[name]
    try:
        made.result()
    except KafkaException as cause:
        if cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise _failed(address, cause) from cause
    return True


def produce(address: str, name: str, records: Iterable[Record]) -> int:
    """Write records into a topic; return how many, once all of them are there."""
    failures: list[KafkaError] = []

    def told(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({**_client(address), "message.timeout.ms": int(_SECONDS * 1_000)})
    count = 0
    for record in records:
        while True:
            try:
                producer.produce(name, record.value, record.key, on_delivery=told)
                break
            except BufferError:
                producer.poll(_POLL_SECONDS)
        producer.poll(0)
        count += 1
    producer.flush(_SECONDS)
    if failures:
        raise _failed(address, KafkaException(failures[0]))
    return count


def consume(address: str, name: str, *, follow: bool = False) -> Generator[Record, None, None]:
    """Yield the records of a topic: those that are there now, or for ever."""
    consumer = Consumer(
        {**_client(address), "group.id": "reclock-dev", "enable.auto.commit": False,
         "isolation.level": "read_committed", "enable.partition.eof": True}
    )  # fmt: skip
    try:
        try:
            found = consumer.list_topics(name, _SECONDS).topics[name]
        except KafkaException as cause:
            raise _failed(address, cause) from cause
        if found.error is not None:
            text = f'topic "{name}" does not exist at {address}'
            hint = f"reclock dev kafka topic {name} makes it"
            raise InvalidValue(text, code="42704", hint=hint)
        waiting = set(found.partitions)
        consumer.assign([TopicPartition(name, p, OFFSET_BEGINNING) for p in sorted(waiting)])
        while waiting or follow:
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield Record(message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - it has no other name
                waiting.discard(message.partition())
            else:
                raise _failed(address, KafkaException(error))
    finally:
        consumer.close()


def parse_line(line: str, separator: str | None) -> Record:
    r"""Return the record that a line says.

    >>> parse_line('{"id": 1}', None)
    Record(key=None, value=b'{"id": 1}')
    >>> parse_line("7\tseven", "\t"), parse_line("7\t", "\t")
    (Record(key=b'7', value=b'seven'), Record(key=b'7', value=None))
    """
    text = line.rstrip("\r\n")
    if separator is None:
        return Record(None, text.encode())
    key, found, value = text.partition(separator)
    if not found:
        message = f'the line "{text:.60}" has no separator'
        raise InvalidValue(message, hint=f"write key{separator}value, or leave out --separator")
    return Record(key.encode(), value.encode() if value else None)


def _client(address: str) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": address, "log_level": 0}


def _failed(address: str, cause: KafkaException) -> BrokerFailed:
    message = f"the broker at {address} did not do it"
    detail = cause.args[0].str() if cause.args else str(cause)
    return BrokerFailed(message, detail=detail, hint="reclock dev kafka start starts one")
