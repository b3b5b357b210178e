"""The writer of the transfers: a thread with an ordinary producer, at a steady rate.

It knows nothing of reclock, and goes on while the engine is dead: what it wrote meanwhile must
come out all the same.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from reclock.demo.bank import PARTITIONS, TRANSFERS, transfers

_PAUSE: Final = 0.1


class Feed:
    """Writes ``rate`` transfers a second from ``start`` until ``stop``."""

    def __init__(self, broker: str, rate: int) -> None:
        self.written = 0
        """How many transfers the broker has."""
        self._rate = rate
        self._broker = broker
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-feed", daemon=True)

    def start(self) -> None:
        """Make the topic, and begin."""
        admin = AdminClient({"bootstrap.servers": self._broker, "log_level": 0})
        made = admin.create_topics([NewTopic(TRANSFERS, PARTITIONS, 1)])
        made[TRANSFERS].result()
        self._thread.start()

    def stop(self) -> int:
        """Write no more; return how many there are."""
        self._stopped.set()
        self._thread.join()
        return self.written

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._broker, "enable.idempotence": True, "log_level": 0}
        )
        sent, began = 0, time.monotonic()
        while not self._stopped.wait(_PAUSE):
            due = int((time.monotonic() - began) * self._rate)
            for transfer in transfers(sent, due):
                producer.produce(TRANSFERS, transfer.json(), key=str(transfer.id).encode())
            sent = due
            producer.flush()
            self.written = sent
