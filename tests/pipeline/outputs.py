"""What sinks have committed, read as any consumer would: docs/sink-messages.md.

The messages up to a time amount to what the relation held then: nothing is missing, nothing is
there twice, times are whole and ascend.
"""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reclock.testing.kafka_log import MemoryKafka

    from .model import Rows

ENVELOPES = ("debezium", "materialize", "upsert")


class Output:
    """A sink's topic."""

    def __init__(self, name: str, of: str, envelope: str, key: str | None, since: int) -> None:
        self.name, self.of, self.envelope, self.key = name, of, envelope, key
        self.since = since
        """From here on, times must be right."""

    def statement(self) -> str:
        key = f"KEY ({self.key})" if self.key else ""
        return (
            f"CREATE SINK {self.name} FROM {self.of} INTO KAFKA BROKER 'b:1' TOPIC '{self.name}' "
            f"{key} FORMAT JSON ENVELOPE {self.envelope} WITH (reuse_topic = true)"
        )

    def told(self, kafka: MemoryKafka) -> dict[int, Any]:
        """Return what was committed, by time."""
        found: dict[int, list[Any]] = {}
        topic = kafka.described(self.name)
        for partition in topic.partitions if topic else ():
            last = -1
            for entry in kafka.partition(self.name, partition).entries:
                if not entry.visible("read_committed") or entry.record is None:
                    continue
                value, key, _, headers = entry.record
                message = None if value is None else json.loads(value, parse_float=Decimal)
                if message and "progress" in message:
                    continue
                if message and "array" in message:
                    for update in message["array"]:
                        some = found.setdefault(update["time"], [])
                        some.append((tuple(update["data"].values()), update["diff"]))
                    continue
                time = int(dict(headers)["reclock-timestamp"] or b"")
                assert time >= last, f"{self.name}: {time} comes after {last}"
                last = time
                some = found.setdefault(time, [])
                if self.envelope == "upsert":
                    some.append((key, None if message is None else tuple(message.values())))
                else:
                    some += [(tuple(message[w].values()), d) for w, d in SIDES if message[w]]
        return found

    def states(self, kafka: MemoryKafka, times: list[int]) -> dict[int, Rows]:
        """Return what a consumer has at each time."""
        told = self.told(kafka)
        held: dict[Any, Any] = {}
        rows: Rows = Counter()
        made = {}
        for time in sorted({*times, *told}):
            some = told.get(time, [])
            assert len(some) == len(set(some)) or self.envelope == "debezium", f"twice at {time}"
            for what, after in some:
                if self.envelope == "upsert":
                    held[what] = after
                else:
                    rows[what] += after
            now = Counter([r for r in held.values() if r]) if self.envelope == "upsert" else rows
            assert not -now, f"{self.name} at {time}: fewer than none of {-now}"
            made[time] = +now
        return made


SIDES = (("before", -1), ("after", 1))
