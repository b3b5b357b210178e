"""Tables of a captured database: whole transactions, numbered or in system time.

What is there at a time follows from how far the source had read then, which its bindings say
(docs/timelines.md, change/transactions.py has the same definition).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from reclock.testing.kafka_upstream import Record as Message

from .feeds import KEYS, TEXTS, Log, named
from .model import Broken, Record, Rows

if TYPE_CHECKING:
    from random import Random

    from .feeds import Steps


class Said(NamedTuple):
    """A message of a transaction: its number, what it is (or of which table), place and key."""

    number: int
    what: str
    message: Message
    order: int = 0
    key: int = 0


class Captured:
    """A database with two tables, whose transactions are written to topics."""

    def __init__(self, kafka: Any, partitions: int) -> None:
        self.kafka = kafka
        self.metadata = kafka.create_topic(1)
        self.partitions = partitions
        self.tables: dict[str, dict[int, Any]] = {"a": {}, "b": {}}
        self.transactions: list[dict[str, Any]] = []
        self.lanes: dict[tuple[str, int], list[Said]] = {}
        self.sent: Counter[tuple[Any, ...]] = Counter()
        self.again: list[tuple[tuple[str, int], Said]] = []
        self.written: dict[str, dict[int, Said]] = {}
        """What is in each part, by offset."""
        self.members: list[Transactional] = []
        """The sources that release transactions together."""
        self.lsn = 0
        self.faults: list[dict[str, Any]] = []
        """Records that do not decode: of which table, key and place, and when they were known."""
        for table in self.tables:
            kafka._make(self.topic(table), partitions)

    def topic(self, table: str) -> str:
        return f"{self.metadata}.public.{table}"

    def commit(self, rng: Random) -> None:
        """Commit a transaction; its messages wait in their lanes."""
        number = len(self.transactions) + 1
        name = f"tx{number}"
        changes: list[tuple[str, int, Any]] = []
        counts: Counter[str] = Counter()
        lane = self.lanes.setdefault((self.metadata, 0), [])
        lane.append(Said(number, "begin", self.said({"status": "BEGIN", "id": name})))
        tables = rng.sample(["a", "b"], rng.choice([1, 2, 2]))
        wanted = [(t, 1_000 + number, True) for t in tables]
        for fault in self.faults:  # a later row of the key takes the place of the error
            if fault["healed"] is None and fault["table"] in tables and rng.random() < 0.4:
                fault["healed"] = number
                wanted.append((fault["table"], fault["key"], True))
        wanted += [
            (rng.choice(tables), rng.randrange(KEYS), False) for _ in range(rng.randrange(4))
        ]
        for order, (table, k, marker) in enumerate(wanted, 1):
            before = self.tables[table].get(k)
            gone = before is not None and not marker and rng.random() < 0.3
            after = None if gone else (k, rng.choice([None, *range(12)]), rng.choice(TEXTS))
            self.tables[table][k] = after
            counts[table] += 1
            self.lsn += 1
            op = "d" if after is None else "c" if before is None else "u"
            place = {"id": name, "total_order": order, "data_collection_order": counts[table]}
            value = {
                "before": named(before), "after": named(after), "op": op, "transaction": place,
                "source": {"sequence": json.dumps([str(number), str(self.lsn)])},
            }  # fmt: skip
            message = Message(json.dumps(value).encode(), json.dumps({"k": k}).encode(), 0)
            at = (self.topic(table), k % self.partitions)
            self.lanes.setdefault(at, []).append(Said(number, table, message, order, k))
            changes.append((table, k, after))
        listed = [{"data_collection": f"public.{t}", "event_count": n} for t, n in counts.items()]
        end = {"status": "END", "id": name, "event_count": len(changes), "data_collections": listed}
        lane.append(Said(number, "end", self.said(end)))
        self.transactions.append({"changes": changes, "counts": counts})

    def spoil(self, rng: Random) -> None:
        """Write a record that does not decode, under a key of its own."""
        table, key = rng.choice(sorted(self.tables)), 500 + len(self.faults)
        partition = rng.randrange(self.partitions)
        place = self.topic(table), self.kafka.partition(self.topic(table), partition).high
        raw = rng.choice([b"nope", b"\xff", b'{"before": 1}', b'{"after": {"k": "x"}}', b"[]"])
        message = Message(raw, b'{"k": %d}' % key, 0)
        self.kafka.produce(self.topic(table), partition, message)
        self.faults.append(
            {"table": table, "key": key, "healed": None, "place": (partition, place[1])}
        )

    def grow(self) -> None:
        """Give the topics of rows a partition more."""
        self.partitions = min(self.partitions + 1, 4)
        for table in self.tables:
            self.kafka.add_partitions(self.topic(table), self.partitions)

    @staticmethod
    def said(value: dict[str, Any]) -> Message:
        return Message(json.dumps(value).encode(), b'{"id": 1}', 0)

    def deliver(self, rng: Random | None, *, shuffled: bool = False) -> None:
        """Let some of what waits arrive: each lane in its order, or in any."""
        for at, lane in self.lanes.items():
            for _ in range(rng.randint(0, len(lane)) if rng else len(lane)):
                mixed = shuffled and rng is not None and at[0] != self.metadata
                said = lane.pop(rng.randrange(len(lane)) if mixed and rng else 0)
                self.write(at, said)
                self.sent[said[:2]] += 1
                self.again.append((at, said))
        if rng is not None and rng.random() < 0.15:
            for at, said in self.again[-rng.randint(1, 6) :]:
                self.write(at, said)

    def write(self, at: tuple[str, int], said: Said) -> None:
        offset = self.kafka.partition(*at).high
        self.kafka.produce(*at, said.message)
        self.written.setdefault(f"{at[0]}/{at[1]}", {})[offset] = said

    def whole(self, number: int, table: str) -> bool:
        """Return whether all of a transaction that a table has is there."""
        counted = self.transactions[number - 1]["counts"][table]
        return bool(self.sent[number, "end"]) and self.sent[number, table] >= counted

    def rows(self, table: str, numbers: set[int]) -> Rows:
        """Return a table after some of the transactions."""
        held: dict[int, Any] = {}
        for number in sorted(numbers):
            changes = self.transactions[number - 1]["changes"]
            held |= {k: after for name, k, after in changes if name == table}
        return Counter([row for row in held.values() if row is not None])


class Transactional(Log):
    """A captured table with a consistency topic: whole transactions, numbered or in system time."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        shared = self.kafka.__dict__.setdefault("captured", {})
        self.captured = shared.setdefault("db", None) or Captured(self.kafka, self.spec["parts"])
        shared["db"] = self.captured
        self.table = self.spec["table"]
        self.strict = self.spec["order"] == "strict"
        self.epoch = self.spec["epoch"]
        self.moments: set[int] = set()
        self.steps: dict[int, dict[str, int]] = {}
        """How far each part was read, at the times at which something was published."""
        if not self.strict:
            self.captured.members.append(self)

    def statements(self) -> list[str]:
        into = " RECLOCK INTO EPOCH" if self.epoch else ""
        options = [f"consistency_topic = '{self.captured.metadata}'"]
        options += [] if self.strict else ["transaction_order = 'complete'"]
        options += self.spec.get("options", [])
        return [
            f"CREATE SOURCE {self.name} (k BIGINT PRIMARY KEY, v BIGINT, s TEXT) FROM KAFKA BROKER "
            f"'b:1' TOPIC '{self.captured.topic(self.table)}' FORMAT JSON ENVELOPE DEBEZIUM{into} "
            f"WITH ({', '.join(options)})"
        ]

    def send(self, rng: Random, run: Any) -> None:
        if self.spec.get("bad") and rng.random() < self.spec["bad"]:
            self.captured.spoil(rng)
        if self.spec.get("grows") and rng.random() < 0.1:
            self.captured.grow()
        if rng.random() < 0.6:
            for _ in range(rng.randint(1, 2)):
                self.captured.commit(rng)
        self.captured.deliver(rng, shuffled=self.spec.get("shuffled", False))

    def settle(self, run: Any) -> None:
        self.captured.deliver(None)

    def prefix(self) -> int:
        """Return up to which number all transactions are whole."""
        number = 0
        while number < len(self.captured.transactions) and self.captured.whole(
            number + 1, self.table
        ):
            number += 1
        return number

    def open_offsets(self) -> dict[str, int]:
        return {"transaction": self.prefix() + 1} if self.strict else {}

    def observe(self, steps: Steps) -> None:
        self.moments |= {t for found in steps.values() for t, _ in found}
        for part, found in steps.items():
            for time, offset in found:
                known = self.steps.setdefault(time, {}).setdefault(part, offset)
                assert known == offset, f"{self.name}: {part} was bound to {known} at {time}"
        if not (self.epoch and self.strict):
            for part, found in steps.items():
                offsets = [offset for _, offset in sorted(found)]
                assert offsets == sorted(offsets), f"{self.name}: bindings of {part} go back"
            return
        for number in range(1, len(self.captured.transactions) + 1):
            self.records.setdefault(("transaction", number), Record("transaction", number, ()))
        super().observe(steps)

    def limit(self) -> int | None:
        return self.prefix() + 1 if self.strict and not self.epoch else None

    def done(self, upper: int) -> bool:
        count = len(self.captured.transactions)
        if not self.strict:
            done = self.captured.transactions
            mine = {n for n in range(1, count + 1) if done[n - 1]["counts"][self.table]}
            return self.shown(upper - 1) >= mine if upper > 0 else not mine
        if not self.epoch:
            return upper == count + 1 or count == 0
        return super().done(upper)

    def times(self) -> set[int]:
        if self.strict and not self.epoch:
            numbers = set(range(1, len(self.captured.transactions) + 1))
            return numbers | {at for at, _ in self.faults()}
        return self.moments | {at for at, _ in self.faults()}

    def read(self, time: int) -> dict[str, int]:
        """Return how far each part was read when the last time up to this one was published."""
        known = max((t for t in self.steps if t <= time), default=None)
        return {} if known is None else self.steps[known]

    def shown(self, time: int) -> set[int]:
        """Return which transactions are released at a time, in all sources of the topic alike.

        Those that are complete in all of them, and have in none of them a row whose key a row has
        of an older one that is not released.
        """
        views = [m.arrived(time) for m in self.captured.members]
        numbers = set.intersection(*(whole for whole, _ in views))
        while True:
            held = {
                n for n in numbers for _, keys in views for k in keys.get(n, ())
                if any(k in keys[m] for m in keys if m < n and m not in numbers)
            }  # fmt: skip
            if not held:
                return numbers
            numbers -= held

    def arrived(self, time: int) -> tuple[set[int], dict[int, set[int]]]:
        """Return the complete transactions of what was read, and the keys of each one."""
        mentioned, ended = set(), set()
        places: dict[int, set[int]] = {}
        keys: dict[int, set[int]] = {}
        for part, stop in self.read(time).items():
            for offset, said in self.captured.written.get(part, {}).items():
                if offset >= stop:
                    continue
                if said.what in ("begin", "end"):
                    mentioned.add(said.number)
                    ended |= {said.number} if said.what == "end" else set()
                elif said.what == self.table:
                    places.setdefault(said.number, set()).add(said.order)
                    keys.setdefault(said.number, set()).add(said.key)
        counts = {n: self.captured.transactions[n - 1]["counts"][self.table] for n in ended}
        whole = {n for n in ended if len(places.get(n, ())) == counts[n]}
        return whole, {n: some for n, some in keys.items() if n in mentioned}

    def released(self, time: int) -> set[int]:
        """Return the numbers of the transactions that are there at a time."""
        if not self.strict:
            return self.shown(time)
        if self.epoch:
            return {record.offset for _, record in self.placed(time)}
        return set(range(1, min(time, len(self.captured.transactions)) + 1))

    def broken_from(self, fault: dict[str, Any]) -> int | None:
        """Return when the error of a record is there first: with the next that is released."""
        part, offset = f"{self.captured.topic(self.table)}/{fault['place'][0]}", fault["place"][1]
        times = sorted(t for t, read in self.steps.items() if read.get(part, 0) > offset)
        if not times or not self.strict or self.epoch:
            return times[0] if times else None
        return 1 + max((t for t in self.steps if t < times[0]), default=-1)

    def faults(self) -> list[tuple[int, dict[str, Any]]]:
        mine = [f for f in self.captured.faults if f["table"] == self.table]
        return [(at, f) for f in mine if (at := self.broken_from(f)) is not None]

    def rows(self, time: int) -> Rows:
        numbers = self.released(time)
        for at, fault in self.faults():
            healed = fault["healed"] in numbers and fault["healed"] not in self.released(at - 1)
            if at <= time and not healed:
                raise Broken("a record does not decode")
        return self.captured.rows(self.table, numbers)
