"""Topics in memory, as a reader sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from conditions import assert_facts_agree
from databases import Opener, _no_power_is_lost, db, make_opener, opener
from reclock.connectors.kafka.cluster import Span

if TYPE_CHECKING:
    from reclock.session.database import Database


__all__ = ["Opener", "_no_power_is_lost", "db", "make_opener", "opener"]


class Message(NamedTuple):
    time: int
    key: bytes | None
    value: bytes | None


class Bench:
    """A database that can be crashed, and the topics that its sinks write to."""

    def __init__(self, opener) -> None:
        self.opener = opener
        self.kafka = opener.kafka
        self.db: Database = opener()

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.db.execute(statement)

    def tick(self, times: int = 1, ms: int = 1_000) -> None:
        for _ in range(times):
            self.opener.clock.advance(ms)
            self.db.tick()

    def crash(self) -> None:
        self.db = self.opener.reopened(self.db)

    def rows(self, query: str) -> list[tuple]:
        return sorted(self.db.execute(query).rows, key=repr)

    def status(self, column: str = "state", sink: str = "s") -> object:
        assert_facts_agree(self.db)
        query = f"SELECT {column} FROM reclock.sink_status WHERE sink = '{sink}'"
        return self.db.execute(query).rows[0][0]

    def messages(self, topic: str = "out", partition: int = 0) -> list[Message]:
        cluster = self.kafka.cluster("read_committed")
        high = cluster.watermarks(topic, [partition])[partition].high
        found = []
        for batch in cluster.fetch(topic, [Span(partition, 0, high)], ["key", "headers"]):
            for row in batch.to_pylist():
                headers = {h["key"]: h["value"] for h in row["headers"] or ()}
                time = int(headers.get("reclock-timestamp", b"0"))
                found.append(Message(time, row["key"], row["value"]))
        return found


@pytest.fixture
def bench(opener) -> Bench:
    return Bench(opener)


@pytest.fixture(scope="module")
def make_bench(make_opener):
    return lambda: Bench(make_opener())
