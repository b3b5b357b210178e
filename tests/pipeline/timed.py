"""Feeds that bring their times: CDCv2, and bindings that a table supplies.

The times are the sender's, so the model knows more than of other feeds: not just what is there at a
time, but which times may be complete, and which must be in the end (docs/timelines.md).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from reclock.testing.kafka_upstream import Record as Message

from . import payload, stated_avro
from .feeds import KEYS, TEXTS, Feed, Topic
from .model import Broken, Rows

if TYPE_CHECKING:
    from random import Random

    from .feeds import Steps


BAD: list[Any] = [
    b"nope", b"", b"[]", b"{}", b"\xff",
    {"array": [{"data": {"k": "x"}, "time": 2**40, "diff": 1}]},
    {"array": [{"data": {"k": 1}, "time": -1, "diff": 1}]},
    {"array": [{"data": {"k": 1}, "time": 2, "diff": 0}]},
    {"array": [{"data": {"k": 1}, "diff": 1}]},
    {"progress": {"lower": [9], "upper": [5], "counts": []}},
    {"progress": {"lower": [0], "upper": [5], "counts": [{"time": 2, "count": -1}]}},
    {"progress": {"lower": [0], "upper": [5], "counts": [{"time": 9, "count": 1}]}},
    {"progress": {"lower": [0], "upper": [5]}},
]  # fmt: skip
"""Messages that are none of CDCv2."""


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
        self.faults: dict[tuple[str, int], int | None] = {}
        """Where messages are that do not decode, and from when on there is the error."""
        self.wrong = False
        """Whether something was said that contradicts what was complete."""
        self.ended: int | None = None
        """From when on there is the error of that, and nothing more is read."""
        self.upper_seen = 0
        """Before which times all was published, as it was seen."""
        self.place = self.home / self.name
        self.topic = ""
        self.size = self.spec["partitions"]
        if self.spec["via"] == "topic":
            self.topic = self.kafka.create_topic(self.size)
        else:
            self.place.write_bytes(b"")

    def statements(self) -> list[str]:
        whose = "epoch_ms_timeline = true" if self.spec.get("epoch") else "timeline = 'tl'"
        options = ", ".join([whose, *self.spec.get("options", [])])
        via = f"KAFKA BROKER 'b:1' TOPIC '{self.topic}'" if self.topic else f"FILE '{self.place}'"
        avro = self.spec.get("format") == "avro"
        form = f"AVRO USING SCHEMA '{stated_avro.STATEMENT}'" if avro else "JSON"
        return [
            f"CREATE SOURCE {self.name} (k BIGINT, v BIGINT, s TEXT) FROM {via} "
            f"FORMAT {form} ENVELOPE MATERIALIZE WITH ({options})"
        ]

    def send(self, rng: Random, run: Any) -> None:
        if self.spec.get("bad") and rng.random() < self.spec["bad"]:
            self.spoil(rng)
        if self.spec.get("contradicts") and rng.random() < self.spec["contradicts"]:
            self.contradict(rng)
        if self.spec.get("grows") and self.topic and rng.random() < 0.1:
            self.size = min(self.size + 1, 4)
            self.kafka.add_partitions(self.topic, self.size)
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
        avro = self.spec.get("format") == "avro"
        self.write(stated_avro.encoded(message) if avro else json.dumps(message).encode(), rng)

    def write(self, value: bytes, rng: Random | None) -> tuple[str, int]:
        """Write a message, and return where it is."""
        if not self.topic:
            with self.place.open("ab") as file:
                offset = file.tell()
                file.write(value + b"\n")
            return self.name, offset
        partition = rng.randrange(self.size) if rng else 0
        offset = self.kafka.partition(self.topic, partition).high
        self.kafka.produce(self.topic, partition, Message(value))
        return str(partition), offset

    def spoil(self, rng: Random) -> None:
        """Write a message that does not decode: it is an error of the first time still open."""
        avro = self.spec.get("format") == "avro"
        bad = rng.choice(stated_avro.BAD if avro else BAD)
        self.faults[
            self.write(bad if isinstance(bad, bytes) else json.dumps(bad).encode(), rng)
        ] = None

    def contradict(self, rng: Random) -> None:
        """State an update of a time that is complete without it, or another count."""
        if not self.upper_seen or self.ended is not None:
            return
        time = rng.randrange(self.upper_seen)
        data = dict(zip(payload.NAMES, (77, len(self.sent), "late"), strict=True))
        count = {"time": time, "count": len(self.log.get(time, ())) + 1}
        progress = {"lower": [time], "upper": [time + 1], "counts": [count]}
        update = {"data": data, "time": time, "diff": 1}
        said = rng.choice([{"array": [update]}, {"progress": progress}])
        avro = self.spec.get("format") == "avro"
        self.write(stated_avro.encoded(said) if avro else json.dumps(said).encode(), rng)
        self.wrong = True

    def observe(self, steps: Steps) -> None:
        for (part, offset), begun in self.faults.items():
            found = sorted(steps.get(part, ()))
            time = next((t for t, stop in found if stop > offset), None)
            if time is not None:
                assert begun is not None, f"{self.name}: {part}:{offset} was read, and no time open"
                assert begun <= time or time == found[0][0], f"{self.name}: bound before {begun}"

    def published(self, upper: int | None) -> None:
        if upper is not None and upper > self.upper_seen:
            if self.wrong and self.ended is None:
                self.ended = self.upper_seen
            self.faults |= {p: self.upper_seen for p, begun in self.faults.items() if begun is None}
            self.upper_seen = upper

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

    def limit(self) -> int | None:
        return None if self.wrong else self.complete()

    def done(self, upper: int) -> bool:
        return self.ended is not None if self.wrong else upper == self.complete()

    def times(self) -> set[int]:
        ends = [] if self.ended is None else [self.ended]
        return {*self.log, *ends, *(t for t in self.faults.values() if t is not None)}

    def rows(self, time: int) -> Rows:
        if self.ended is not None and time >= self.ended:
            raise Broken("it contradicts itself")
        if any(at is not None and at <= time for at in self.faults.values()):
            raise Broken("a message does not decode")
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
