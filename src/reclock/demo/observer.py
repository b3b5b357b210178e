"""The reader of the output: an ordinary ``read_committed`` consumer that trusts nothing.

It counts how often each transfer is in the ledger, and adds up all balances after every
timestamp: money is only moved, so the sum is 0 whenever one looks, or the output is wrong.

The messages of a timestamp are together in their partition and carry it in the header
``reclock-timestamp``; a timestamp is whole when the next one begins, or the log ends.

Tests: tests/demo/test_observer.py.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # it is public

from reclock.demo.bank import BALANCE, LEDGER, PARTITIONS, TOTAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

TOPICS: Final = (LEDGER, BALANCE, TOTAL)
HEADER: Final = "reclock-timestamp"


@dataclass
class Seen:
    """What the topics say so far."""

    messages: int = 0
    ids: dict[int, int] = field(default_factory=dict)
    """How often each transfer is in the ledger."""
    balances: dict[int, int] = field(default_factory=dict)
    timestamps: int = 0
    """How many timestamps of the balances are whole."""
    repeated: int = 0
    """How many messages said at one timestamp what an earlier one of it had said."""
    unbalanced: list[int] = field(default_factory=list)
    """The timestamps at which the balances did not add up to 0."""
    totals: list[int] = field(default_factory=list)
    """What the view of the total ever was."""
    at: int | None = None
    """The timestamp of the last balance."""
    _changed: set[int] = field(default_factory=set)

    @property
    def duplicates(self) -> int:
        """How many messages there are too many."""
        return sum(self.ids.values()) - len(self.ids) + self.repeated

    def read(self, topic: str, key: bytes | None, value: bytes | None, at: int) -> None:
        """Take in one message."""
        self.messages += 1
        body = json.loads(value or b"null")
        if topic == BALANCE:
            self._balance(json.loads(key or b"null")["account"], body, at)
        elif body["after"] is not None:
            row = body["after"]
            if topic == LEDGER:
                self.ids[row["id"]] = self.ids.get(row["id"], 0) + 1
            else:
                self.totals.append(row["total"])

    def _balance(self, account: int, body: dict[str, int] | None, at: int) -> None:
        if at != self.at:
            self.close()
            self.at = at
        self.repeated += account in self._changed
        self._changed.add(account)
        self.balances[account] = 0 if body is None else body["balance"]

    def close(self) -> None:
        """Look at the last timestamp, which is whole."""
        if self.at is not None and self._changed:
            self.timestamps += 1
            if sum(self.balances.values()) != 0:
                self.unbalanced.append(self.at)
        self._changed = set()


def read_all(broker: str) -> Seen:
    """Read every topic from its beginning to its end."""
    seen = Seen()
    consumer = _consumer(broker)
    try:
        places = list(_places(consumer))
        ends = {(p.topic, p.partition): _end(consumer, p) for p in places}
        consumer.assign(places)
        while any(_behind(consumer, place, ends) for place in places):
            for message in consumer.consume(1_000, 1.0):
                _take(seen, message)
        seen.close()
    finally:
        consumer.close()
    return seen


class Observer:
    """Reads on and on in a thread; ``seen`` is what it has seen."""

    def __init__(self, broker: str) -> None:
        self.seen = Seen()
        self._broker = broker
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-observer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        consumer = _consumer(self._broker)
        known: set[str] = set()
        looked = 0.0
        while not self._stopped.is_set():
            if len(known) < len(TOPICS) and time.monotonic() > looked + 1:
                looked = time.monotonic()
                new = [place for place in _places(consumer) if place.topic not in known]
                if new:
                    known.update(place.topic for place in new)
                    consumer.incremental_assign(new)
            for message in consumer.consume(1_000, 0.2) if known else ():
                _take(self.seen, message)
            if not known:
                self._stopped.wait(0.2)
        consumer.close()


class Transactions:
    """Tells whether the ledger has uncommitted writes."""

    def __init__(self, broker: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})

    def is_open(self) -> bool:
        """Return whether the log goes further than what is committed of it."""
        written = self._end(IsolationLevel.READ_UNCOMMITTED)
        committed = self._end(IsolationLevel.READ_COMMITTED)
        return committed < written

    def _end(self, level: IsolationLevel) -> int:
        places = {TopicPartition(LEDGER, n): OffsetSpec.latest() for n in range(PARTITIONS)}  # type: ignore[no-untyped-call] # has no types
        asked = self._admin.list_offsets(places, isolation_level=level)
        try:
            return sum(int(answer.result().offset) for answer in asked.values())
        except KafkaException:
            return 0  # there is no such topic yet


def _consumer(broker: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "demo",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )


def _places(consumer: Consumer) -> Iterable[TopicPartition]:
    """Yield the partitions that there are."""
    topics = consumer.list_topics(timeout=10).topics
    for topic in TOPICS:
        if topic in topics:
            for partition in topics[topic].partitions:
                yield TopicPartition(topic, partition, 0)


def _end(consumer: Consumer, place: TopicPartition) -> int:
    return int(consumer.get_watermark_offsets(place, timeout=10)[1])


def _behind(consumer: Consumer, place: TopicPartition, ends: dict[tuple[str, int], int]) -> bool:
    end = ends[place.topic, place.partition]
    return end > 0 and consumer.position([place])[0].offset < end


def _take(seen: Seen, message: Message) -> None:
    if message.error() is not None:
        return
    headers = dict(message.headers() or ())
    topic = message.topic()
    assert topic is not None
    seen.read(topic, message.key(), message.value(), int(headers[HEADER] or 0))
