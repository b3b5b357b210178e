"""Feeds that bring their times: CDCv2, bindings that a table supplies, transactions of a database.

The times are the sender's, so the model knows more than of other feeds: not just what is there at a
time, but which times may be complete, and which must be in the end (docs/timelines.md).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from reclock.testing.kafka_conformance import Record as Message

from . import payload
from .feeds import KEYS, TEXTS, Feed, Log, Topic
from .model import Record, Rows

if TYPE_CHECKING:
    from random import Random

    from .feeds import Steps


class Stated(Feed):
    """ENVELOPE MATERIALIZE: updates with their times, and progress, in any order, repeated."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.log: dict[int, Rows] = {}
        self.present: Rows = Counter()
        self.upper = 0
        """Times before it are planned."""
        self.waiting: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.place = self.home / self.name
        self.topic = ""
        if self.spec["via"] == "topic":
            self.topic = self.kafka.create_topic(self.spec["partitions"])
        else:
            self.place.write_bytes(b"")

    def statements(self) -> list[str]:
        whose = "epoch_ms_timeline = true" if self.spec.get("epoch") else "timeline = 'tl'"
        options = ", ".join([whose, *self.spec.get("options", [])])
        via = f"KAFKA BROKER 'b:1' TOPIC '{self.topic}'" if self.topic else f"FILE '{self.place}'"
        return [
            f"CREATE SOURCE {self.name} (k BIGINT, v BIGINT, s TEXT) FROM {via} "
            f"FORMAT JSON ENVELOPE MATERIALIZE WITH ({options})"
        ]

    def send(self, rng: Random, run: Any) -> None:
        if rng.random() < 0.6:
            self.plan(rng, run.lab.clock.now_ms())
        rng.shuffle(self.waiting)
        for _ in range(rng.randint(0, len(self.waiting))):
            self.deliver(self.waiting.pop(), rng)
        if self.sent and rng.random() < 0.3:
            self.deliver(rng.choice(self.sent), rng)

    def plan(self, rng: Random, now: int) -> None:
        """Change the collection at a few times, and cut what is to be said of them."""
        lower, self.upper = self.upper, self.upper + rng.randint(1, 4)
        if self.spec.get("epoch"):
            self.upper = max(self.upper, now + rng.choice([-2_000, -1, 0, 1_000, 15_000]))
        counts = []
        some = rng.sample(range(lower, self.upper), min(4, self.upper - lower))
        for time in sorted({*some, self.upper - 1}):
            changes: Rows = Counter()
            for _ in range(rng.choice([0, 0, 1, 2, 4])):
                left = Counter(self.present)
                left.update(changes)
                here = sorted((+left).elements(), key=repr)
                if here and rng.random() < 0.4:
                    changes[rng.choice(here)] -= 1
                else:
                    v = rng.choice([None, *range(12)])
                    changes[(rng.randrange(KEYS), v, rng.choice(TEXTS))] += rng.choice([1, 1, 2])
            changes = Counter({row: n for row, n in changes.items() if n})
            for row, n in changes.items():
                self.present[row] += n
            assert not -self.present, "the plan takes away what is not there"
            self.present = +self.present
            if changes:
                self.log[time] = changes
                counts.append({"time": time, "count": len(changes)})
            said = [
                {"data": dict(zip(payload.NAMES, row, strict=True)), "time": time, "diff": n}
                for row, n in changes.items()
            ]
            while said:
                size = rng.randint(1, 3)
                self.waiting.append({"array": said[:size]})
                said = said[size:]
        progress = {"lower": [lower], "upper": [self.upper], "counts": counts}
        self.waiting.append({"progress": progress})

    def deliver(self, message: dict[str, Any], rng: Random | None) -> None:
        self.sent.append(message)
        value = json.dumps(message).encode()
        if not self.topic:
            with self.place.open("ab") as file:
                file.write(value + b"\n")
            return
        partition = rng.randrange(self.spec["partitions"]) if rng else 0
        self.kafka.produce(self.topic, partition, Message(value))

    def settle(self, run: Any) -> None:
        while self.waiting:
            self.deliver(self.waiting.pop(), None)

    def complete(self) -> int:
        """Return before which times everything was said."""
        stated = [m["progress"] for m in self.sent if "progress" in m]
        came = {(json.dumps(u["data"]), u["time"]) for m in self.sent for u in m.get("array", ())}
        upper = 0
        while True:
            said = next((p for p in stated if p["lower"][0] <= upper < p["upper"][0]), None)
            if said is None:
                return upper
            for counted in sorted(said["counts"], key=lambda c: c["time"]):
                if sum(t == counted["time"] for _, t in came) < counted["count"]:
                    return int(counted["time"])
            upper = said["upper"][0]

    def limit(self) -> int:
        return self.complete()

    def done(self, upper: int) -> bool:
        return upper == self.complete()

    def times(self) -> set[int]:
        return set(self.log)

    def rows(self, time: int) -> Rows:
        rows: Rows = Counter()
        for at, changes in self.log.items():
            if at <= time:
                for row, n in changes.items():
                    rows[row] += n
        return +rows


class Using(Topic):
    """RECLOCK USING: rows of a table say which records are at which time."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.marks: list[tuple[int, int, int]] = []
        self.reached: dict[int, int] = {}
        self.last = 0

    def statements(self) -> list[str]:
        (made,) = super().statements()
        made, _, options = made.partition(" WITH (")
        options = f"timeline = 'tl', {options}" if options else "timeline = 'tl')"
        columns = "(timestamp BIGINT, partition INT, offset BIGINT)"
        return [
            f"CREATE TABLE {self.name}_marks {columns}",
            f"{made} RECLOCK USING {self.name}_marks WITH ({options}",
        ]

    def send(self, rng: Random, run: Any) -> None:
        if rng.random() < 0.5:
            super().send(rng, run)
            return
        rows = []
        for _ in range(rng.randint(1, 2)):
            self.last += rng.randint(1, 3)
            for partition in range(self.size):
                if rng.random() < 0.7:
                    high = self.kafka.partition(self.topic, partition).high
                    before = self.reached.get(partition, 0)
                    ahead = high + rng.choice([0, 0, 0, 2])
                    self.reached[partition] = rng.randint(before, max(before, ahead))
                rows.append((self.last, partition, self.reached.get(partition, 0)))
        rng.shuffle(rows)
        self.mark(rows + rows[: rng.randrange(2)], run)

    def mark(self, rows: list[tuple[int, int, int]], run: Any) -> None:
        self.marks += rows
        values = ", ".join(f"({t}, {p}, {o})" for t, p, o in rows)
        run.execute(f"INSERT INTO {self.name}_marks VALUES {values}")

    def settle(self, run: Any) -> None:
        super().settle(run)
        highs = {p: self.kafka.partition(self.topic, p).high for p in range(self.size)}
        for partition, reached in self.reached.items():
            while highs[partition] < reached:
                key = 900 + partition  # a key stays in its partition
                message = Message(b'{"k": %d, "v": 1, "s": "a"}' % key, b"%d" % key, 0)
                value: Any = (key, 1, "a") if self.spec["envelope"] == "none" else (1, "a")
                record = self.write(self.kafka, partition, message, value, (key,))
                self.records[record.part, record.offset] = record
                highs[partition] += 1
        self.last += 2
        self.mark([(self.last - 1, p, h) for p, h in highs.items()], run)
        self.mark([(self.last, p, h) for p, h in highs.items()], run)

    def observe(self, steps: Steps) -> None:
        super().observe(steps)
        for (part, offset), time in self.bound.items():
            said = min(t for t, p, o in self.marks if p == int(part) and o > offset)
            assert time == said or time == self.folded > said, (
                f"{self.name}: {part}:{offset} is at {time}, not at {said}"
            )

    def check_first(self) -> None:
        pass

    def limit(self) -> int:
        """Return before which time all is there: the marks, and what they mark."""
        stable = self.open_offsets()
        highs = {p: self.kafka.partition(self.topic, p).high for p in range(self.size)}
        ahead = [t for t, p, o in self.marks if o > stable.get(str(p), highs[p])]
        return min([*ahead, max((t for t, _, _ in self.marks), default=0)])

    def done(self, upper: int) -> bool:
        return upper == self.limit()


class Captured:
    """A database with two tables, whose transactions are written to topics."""

    def __init__(self, kafka: Any, partitions: int) -> None:
        self.kafka = kafka
        self.metadata = kafka.create_topic(1)
        self.partitions = partitions
        self.tables: dict[str, dict[int, Any]] = {"a": {}, "b": {}}
        self.transactions: list[dict[str, Any]] = []
        self.lanes: dict[tuple[str, int], list[tuple[int, str, Message]]] = {}
        self.sent: Counter[tuple[int, str]] = Counter()
        self.again: list[tuple[tuple[str, int], Message]] = []
        self.lsn = 0
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
        lane.append((number, "begin", self.said({"status": "BEGIN", "id": name})))
        tables = rng.sample(["a", "b"], rng.choice([1, 2, 2]))
        wanted = [(t, 1_000 + number, True) for t in tables]
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
                "before": _named(before), "after": _named(after), "op": op, "transaction": place,
                "source": {"sequence": json.dumps([str(number), str(self.lsn)])},
            }  # fmt: skip
            message = Message(json.dumps(value).encode(), json.dumps({"k": k}).encode(), 0)
            at = (self.topic(table), k % self.partitions)
            self.lanes.setdefault(at, []).append((number, table, message))
            changes.append((table, k, after))
        listed = [{"data_collection": f"public.{t}", "event_count": n} for t, n in counts.items()]
        end = {"status": "END", "id": name, "event_count": len(changes), "data_collections": listed}
        lane.append((number, "end", self.said(end)))
        self.transactions.append({"changes": changes, "counts": counts})

    @staticmethod
    def said(value: dict[str, Any]) -> Message:
        return Message(json.dumps(value).encode(), b'{"id": 1}', 0)

    def deliver(self, rng: Random | None, *, shuffled: bool = False) -> None:
        """Let some of what waits arrive: each lane in its order, or in any."""
        for at, lane in self.lanes.items():
            for _ in range(rng.randint(0, len(lane)) if rng else len(lane)):
                mixed = shuffled and rng is not None and at[0] != self.metadata
                number, what, message = lane.pop(rng.randrange(len(lane)) if mixed and rng else 0)
                self.kafka.produce(*at, message)
                self.sent[number, what] += 1
                self.again.append((at, message))
        if rng is not None and rng.random() < 0.15:
            for at, message in self.again[-rng.randint(1, 6) :]:
                self.kafka.produce(*at, message)

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


def _named(row: Any) -> Any:
    return None if row is None else dict(zip(payload.NAMES, row, strict=True))


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
        self.seen: dict[int, set[int]] = {}
        self.moments: set[int] = set()

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
            return set(range(1, len(self.captured.transactions) + 1))
        return self.moments

    def shown(self, time: int) -> set[int]:
        """Return which transactions are there, by the row that each of them adds."""
        found = self.ask(f"SELECT k FROM {self.name} AS OF $1", time).rows
        numbers = {k - 1_000 for (k,) in found if k >= 1_000}
        before = self.seen.setdefault(time, numbers)
        assert before == numbers, f"{self.name} at {time} had {before}, has {numbers}"
        for at, some in self.seen.items():
            assert some <= numbers if at <= time else numbers <= some, f"{self.name}: some went"
        return numbers

    def rows(self, time: int) -> Rows:
        if not self.strict:
            numbers = self.shown(time)
            for number in numbers:
                assert self.captured.whole(number, self.table), f"{number} is not whole"
        elif self.epoch:
            numbers = {record.offset for _, record in self.placed(time)}
        else:
            numbers = set(range(1, min(time, len(self.captured.transactions)) + 1))
        return self.captured.rows(self.table, numbers)


TIMED: dict[str, type[Feed]] = {
    "stated": Stated,
    "using": Using,
    "transactional": Transactional,
}
