"""Debezium's output for a PostgreSQL database: rows by table, and their transactions.

``Connector`` keeps the tables and gives the messages of each transaction in the order of the
database's log. A test sends them as a broker might deliver them: each partition in its order, and
nothing is promised between two.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from reclock.testing.kafka_upstream import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOW = 1_700_000_000_000


class Message(NamedTuple):
    """A record for a partition of a topic."""

    topic: str
    partition: int
    value: Any
    key: Any

    @property
    def record(self) -> Record:
        """The message as bytes."""
        value = None if self.value is None else json.dumps(self.value).encode()
        return Record(value, json.dumps(self.key).encode())


class Change(NamedTuple):
    """Row ``key`` of a table gets a value, or goes."""

    table: str
    key: int
    value: str | None


class Connector:
    """Tables of rows ``(id, x)``, each in a topic ``server.public.table``."""

    def __init__(self, metadata: str, tables: Iterable[str], partitions: int) -> None:
        self.metadata = metadata
        """The topic of transactions."""
        self.topics = {table: f"{metadata}.public.{table}" for table in tables}
        self.partitions = partitions
        self.rows: dict[str, dict[int, str]] = {table: {} for table in self.topics}
        self._lsn = 100

    def transaction(self, *changes: Change, name: str | None = None) -> list[Message]:
        """Return BEGIN, the rows, and END of a transaction."""
        name = name or f"{571 + self._lsn}:{self._lsn}"
        counts: Counter[str] = Counter()
        made: list[Message] = []
        for order, change in enumerate(changes, 1):
            counts[change.table] += 1
            place = {
                "id": name, "total_order": order, "data_collection_order": counts[change.table],
            }  # fmt: skip
            made += self._changed(change, place)
        listed = [{"data_collection": f"public.{t}", "event_count": n} for t, n in counts.items()]
        begin = {"status": "BEGIN", "id": name, "event_count": None, "data_collections": None}
        end = {
            "status": "END", "id": name, "ts_ms": _NOW, "event_count": len(changes),
            "data_collections": listed,
        }  # fmt: skip
        first, last = (Message(self.metadata, 0, said, {"id": name}) for said in (begin, end))
        return [first, *made, last]

    def _changed(self, change: Change, place: dict[str, Any]) -> list[Message]:
        table, key, value = change
        rows = self.rows[table]
        before = {"id": key, "x": rows[key]} if key in rows else None
        after = None if value is None else {"id": key, "x": value}
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
        self._lsn += 8
        source = {
            "version": "3.0.0.Final", "connector": "postgresql", "name": self.metadata,
            "ts_ms": _NOW, "snapshot": "false", "db": "shop", "schema": "public", "table": table,
            "sequence": json.dumps([str(self._lsn - 8), str(self._lsn)]),
            "txId": 571, "lsn": self._lsn, "xmin": None,
        }  # fmt: skip
        payload = {
            "before": before, "after": after, "source": source, "transaction": place,
            "op": "d" if after is None else "c" if before is None else "u", "ts_ms": _NOW,
        }  # fmt: skip
        at = self.topics[table], key % self.partitions
        message = Message(*at, {"schema": None, "payload": payload}, {"id": key})
        return [message] if after is not None else [message, Message(*at, None, {"id": key})]
