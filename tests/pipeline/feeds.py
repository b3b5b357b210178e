"""What comes from outside: topics, files, generators and tables, as a test drives them.

A feed writes upstream, keeps what it wrote with its meaning, and says what its relation must hold
at a time, given the bindings that the product has published. It checks the bindings' own laws too:
offsets grow with time, what had a time keeps it (or the time that older ones were folded to),
and nothing is bound that is not committed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reclock.errors import Error
from reclock.testing.kafka_upstream import Record as Message

from . import payload
from .model import Broken, Change, Fault, Placed, Record, Rows, appended, captured, upserted

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from reclock.testing.kafka_log import MemoryKafka

KEYS = 6
TEXTS = (None, "", "a", "b", "é", 'x"y', "1,2", "a b", "🦀")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Steps = dict[str, list[tuple[int, int]]]
"""Bindings of a source: for each part times and the offsets that are next then."""


def is_bad(record: Record) -> bool:
    """Return whether a record does not decode."""
    return isinstance(record.value, Fault) or isinstance(record.key, Fault)


class Feed:
    """A relation and what is upstream of it."""

    def __init__(self, name: str, spec: dict[str, Any], kafka: MemoryKafka, home: Path) -> None:
        self.name, self.spec, self.kafka, self.home = name, spec, kafka, home
        self.on_error = spec.get("on_error", "report")
        self.ask: Any = None
        """Runs a query."""

    def statements(self) -> list[str]:
        """Return what makes the relation."""
        raise NotImplementedError

    def created(self) -> None:
        """The relation is there."""

    def send(self, rng: Random, run: Any) -> None:
        """Do something upstream."""
        raise NotImplementedError

    def settle(self, run: Any) -> None:
        """End what is open upstream, so that everything can be read."""

    def observe(self, steps: Steps) -> None:
        """Take the bindings that are published now, and check them."""

    def published(self, upper: int | None) -> None:
        """Times before ``upper`` are published now, and no others."""

    def alterable(self) -> bool:
        """Return whether ALTER SOURCE can change what becomes of records that do not decode."""
        return False

    def has_faults(self) -> bool:
        """Return whether records are bound that do not decode."""
        return False

    def limit(self) -> int | None:
        """Return before which times all was said, of a feed that brings its times."""
        return None

    def done(self, upper: int) -> bool:
        """Return whether all that is upstream is visible before ``upper``."""
        raise NotImplementedError

    def times(self) -> set[int]:
        """Return when something changes."""
        raise NotImplementedError

    def rows(self, time: int) -> Rows:
        """Return what the relation holds at a time."""
        raise NotImplementedError


class Log(Feed):
    """A feed of records at positions, which are bound to times."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.records: dict[tuple[str, int], Record] = {}
        self.bound: dict[tuple[str, int], int] = {}
        self.first: set[tuple[str, int]] = set()
        self.folded = 0
        self.blurred = 0
        """Times before it were folded before they were seen."""
        self.modes: list[tuple[int, str]] = [(-1, self.on_error)]
        """From which time on what becomes of records that do not decode."""
        self.stopped: int | None = None
        """From which time on there is an error, as the source has ended: on_error = 'stop'."""
        self.seen = 0
        """Before which times all was published, as it was seen."""

    def open_offsets(self) -> dict[str, int]:
        """Return for parts the first offset that nobody may read yet."""
        return {}

    def created(self) -> None:
        limits = self.open_offsets()
        self.first = {(p, o) for p, o in self.records if o < limits.get(p, o + 1)}

    def observe(self, steps: Steps) -> None:
        if not steps:
            assert not self.bound, f"{self.name}: all bindings are gone"
            return
        fold = min(time for found in steps.values() for time, _ in found)
        for part, found in steps.items():
            found.sort()
            offsets = [offset for _, offset in found]
            assert offsets == sorted(offsets), f"{self.name}: bindings of {part} go back"
            limit = self.open_offsets().get(part)
            assert limit is None or offsets[-1] <= limit, f"{self.name}: unfinished is bound"
        for place in self.records:
            part, offset = place
            now = next((t for t, stop in steps.get(part, ()) if stop > offset), None)
            before = self.bound.get(place)
            if before is None:
                if now is not None:
                    self.bound[place] = now
                    if now == fold and now > self.folded:
                        self.blurred = max(self.blurred, now)
            else:
                kept = now == before or (now == fold and now > before)
                assert kept, f"{self.name}: {place} was at {before}, is at {now} (since {fold})"
        self.folded = fold
        self.check_first()
        self.check_end()

    def check_end(self) -> None:
        """Nothing is bound after the end."""
        last = max(self.bound.values(), default=0)
        assert self.stopped is None or last <= self.stopped, f"{self.name}: bound at {last}"

    def check_first(self) -> None:
        """All that there was when the source began to be read, is at one time."""
        if self.spec.get("envelope") == "upsert" and self.on_error != "stop":
            times = {self.bound.get(p) for p in self.first if p in self.records}
            assert len(times) <= 1, f"{self.name}: the first records are at {times}"

    def done(self, upper: int) -> bool:
        return self.stopped is not None or all(
            self.bound.get(p, upper) < upper for p in self.records
        )

    def times(self) -> set[int]:
        ends = () if self.stopped is None else (self.stopped,)
        return {*self.bound.values(), *(t for t, _ in self.modes[1:]), *ends}

    def published(self, upper: int | None) -> None:
        if self.on_error == "stop" and self.stopped is None and upper is not None:
            if self.has_ended(upper - 1):
                first, last = self.seen, upper - 1  # several times may be new
                while first < last:
                    middle = (first + last) // 2
                    first, last = (first, middle) if self.has_ended(middle) else (middle + 1, last)
                self.stopped = first
                bad = [p for p, r in self.records.items() if is_bad(r)]
                assert bad, f"{self.name}: it ended, and all is well"
            self.seen = upper

    def has_ended(self, time: int) -> bool:
        """Ask when the source ended: that it had to, and that it stays so, the model knows."""
        try:
            self.ask(f"SELECT count(*) FROM {self.name} AS OF $1", time)
        except Error as error:
            return error.code == "22P02"
        return False

    def alterable(self) -> bool:
        can = self.spec.get("envelope") != "unkeyed" and self.spec.get("format") != "parquet"
        return self.on_error in ("report", "skip") and can and "format" in self.spec

    def has_faults(self) -> bool:
        return any(is_bad(self.records[place]) for place in self.bound)

    @property
    def inline(self) -> bool:
        return self.on_error == "inline"

    def altered(self, time: int, mode: str) -> None:
        """What becomes of records that do not decode has changed, at a time."""
        self.on_error = mode
        self.modes.append((time, mode))

    def placed(self, time: int) -> list[Placed]:
        """Return the records up to a time, with what became of those that do not decode."""
        if self.stopped is not None and time >= self.stopped:
            raise Broken("it has ended")
        found = []
        for place, at in self.bound.items():
            record: Record | None = self.records[place]
            if at <= time and record is not None and (record := self.judged(record, at, time)):
                found.append((at, record))
        return found

    def judged(self, record: Record, at: int, time: int) -> Record | None:
        """Return what a record that is bound at ``at`` is at ``time``; None: as if not there."""
        if not is_bad(record):
            return record
        mode = next(mode for start, mode in reversed(self.modes) if start < at)
        assert mode != "stop", f"{self.name}: bound is what it stops before"
        if mode == "skip":
            return None
        if any(at <= start <= time for start, mode in self.modes if mode == "skip"):
            gone = {"upsert": None, "debezium": Change(None, None)}
            envelope = self.spec.get("envelope")
            if envelope not in gone or record.key is None or isinstance(record.key, Fault):
                return None
            return replace(record, value=gone[envelope])  # the key has no row
        return record

    def row(self, rng: Random) -> tuple[Any, ...]:
        form = self.spec["format"]
        if form == "text":
            return (rng.choice([t for t in TEXTS if t is not None]),)
        if form == "bytes":
            return (rng.randbytes(rng.randrange(3)),)
        k = rng.randrange(KEYS) if form == "avro" or rng.random() < 0.95 else None
        v = rng.choice([None, *range(-3, 12), rng.randrange(40), 2**40])
        v = v if v != 2**40 or rng.random() < 0.2 else 5
        return (k, v, rng.choice(TEXTS))

    def columns(self) -> str:
        form = self.spec["format"]
        if form in ("text", "bytes"):
            return "(s TEXT)" if form == "text" else "(s BYTEA)"
        keyed = self.spec.get("envelope") in ("upsert", "debezium")
        return f"(k BIGINT{' PRIMARY KEY' if keyed else ''}, v BIGINT, s TEXT)"

    def options(self) -> str:
        made = [f"on_error = '{self.on_error}'"] if self.on_error != "report" else []
        made += self.spec.get("options", [])
        return f" WITH ({', '.join(made)})" if made else ""


class Topic(Log):
    """A topic of Kafka, with any envelope."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.size = self.spec["partitions"]
        self.topic = self.kafka.create_topic(self.size)
        self.homes: dict[Any, int] = {}
        self.open: list[tuple[Any, list[Record]]] = []
        self.held: dict[Any, Any] = {}
        """The database's table, of a captured one."""
        self.said: list[tuple[int, Message, Any, Any]] = []
        self.position = 0
        self.uncommitted = any("read_uncommitted" in o for o in self.spec.get("options", ()))

    def statements(self) -> list[str]:
        spec = self.spec
        upsert = spec["envelope"] == "upsert"
        form = payload.CLAUSES[
            "avro values" if upsert and spec["format"] == "avro" else spec["format"]
        ]
        made = f"FORMAT {form}"
        if upsert:
            made = f"KEY FORMAT JSON VALUE FORMAT {form}"
        if spec.get("include"):
            made += " INCLUDE " + ", ".join(f"{what} AS i_{what}" for what in spec["include"])
        envelope = {"unkeyed": "debezium"}.get(spec["envelope"], spec["envelope"])
        return [
            f"CREATE SOURCE {self.name} {self.columns()} FROM KAFKA BROKER 'b:1' TOPIC "
            f"'{self.topic}' {made} ENVELOPE {envelope}{self.options()}"
        ]

    def open_offsets(self) -> dict[str, int]:
        made: dict[str, int] = {}
        if self.uncommitted:
            return made
        for _, records in self.open:
            for record in records:
                made[record.part] = min(record.offset, made.get(record.part, record.offset))
        return made

    def send(self, rng: Random, run: Any) -> None:
        envelope = self.spec["envelope"]
        lot = rng.random()
        if lot < 0.08:
            self.size = min(self.size + 1, 4)
            self.kafka.add_partitions(self.topic, self.size)
        elif lot < 0.2 and envelope == "none" and len(self.open) < 2:
            transaction = self.kafka.begin()
            made = [self.write(transaction, *self.message(rng)) for _ in range(rng.randint(1, 3))]
            self.open.append((transaction, made))
            if self.uncommitted:
                self.records |= {(r.part, r.offset): r for r in made}
        elif lot < 0.35 and self.open:
            self.end(self.open.pop(rng.randrange(len(self.open))), commit=rng.random() < 0.6)
        elif lot < 0.42 and envelope in ("upsert", "debezium"):
            self.compact()
        elif lot < 0.5 and envelope in ("debezium", "unkeyed") and self.said:
            for message in self.said[-rng.randint(1, 4) :]:  # a connector that was restarted
                record = self.write(self.kafka, *message)
                self.records[record.part, record.offset] = record
        else:
            for _ in range(rng.randint(1, 5)):
                message = self.message(rng)
                record = self.write(self.kafka, *message)
                self.records[record.part, record.offset] = record
                if isinstance(message[2], Change) and message[2].position is not None:
                    self.said.append(message)

    def end(self, opened: tuple[Any, list[Record]], *, commit: bool) -> None:
        transaction, records = opened
        if commit:
            transaction.commit()
            self.records |= {(r.part, r.offset): r for r in records}
        else:
            transaction.abort()

    def settle(self, run: Any) -> None:
        while self.open:
            self.end(self.open.pop(), commit=True)

    def compact(self) -> None:
        """Remove what is replaced, if nobody has still to read it."""
        if len(self.bound) == len(self.records):
            self.kafka.compact(self.topic)

    def write(self, into: Any, partition: int, message: Message, value: Any, key: Any) -> Record:
        offset = self.kafka.partition(self.topic, partition).high
        into.produce(self.topic, partition, message)
        every = {
            "KEY": message.key,
            "PARTITION": partition,
            "OFFSET": offset,
            "TIMESTAMP": EPOCH + timedelta(milliseconds=message.ms or 0),
        }
        extra = tuple(every[what] for what in self.spec.get("include", ()))
        return Record(str(partition), offset, value, key, extra)

    def message(self, rng: Random) -> tuple[int, Message, Any, Any]:
        """Return a partition, a message, and what its value and its key mean."""
        ms = rng.randrange(10**12)
        headers: Any = ((("h", rng.choice([b"1", None])),) * rng.randrange(3),)[0]
        envelope = self.spec["envelope"]
        if envelope in ("debezium", "unkeyed"):
            at, raw, value, key = self.changed(rng)
        elif envelope == "upsert":
            at, raw, value, key = self.upsert(rng)
        else:
            at, raw, value, key = self.plain(rng)
        return at, Message(raw[1], raw[0], ms, headers), value, key

    def partition_of(self, rng: Random, key: Any) -> int:
        """A key stays in its partition."""
        return self.homes.setdefault(key, rng.randrange(self.size))

    def plain(self, rng: Random) -> tuple[int, Any, Any, Any]:
        form = self.spec["format"]
        names = payload.NAMES if form not in ("text", "bytes") else ("s",)
        key = rng.choice([None, b"", b"key"])
        at = rng.randrange(self.size)
        lot = rng.random()
        if lot < self.spec.get("bad", 0) and payload.BAD[form]:
            return at, (key, rng.choice(payload.BAD[form])), Fault(), None
        if lot < 1.3 * self.spec.get("bad", 0):
            value = (None,) if form in ("text", "bytes") else Fault("no value")
            return at, (key, None), value, None
        row = self.row(rng)
        return at, (key, payload.encoded(rng, form, row, names)), row, None

    def upsert(self, rng: Random) -> tuple[int, Any, Any, Any]:
        form = self.spec["format"]
        k = rng.randrange(KEYS)
        key = rng.choice([b"%d", b'{"k": %d}', b'{"k":%d}', b' {"k": %d, "z": 1}']) % k
        lot = rng.random()
        bad = self.spec.get("bad", 0)
        if lot < 0.15:
            return self.partition_of(rng, k), (key, None), None, (k,)
        if lot < 0.15 + bad:
            raw = (
                rng.choice([b"x,a", b"1", b"1,a,b", b'1,a"b', b""])
                if form == "csv"
                else rng.choice(payload.BAD[form]).replace(b'"k"', b'"v"')
            )
            return self.partition_of(rng, k), (key, raw), Fault(), (k,)
        if lot < 0.15 + bad * 1.05:
            return (
                self.partition_of(rng, k),
                (rng.choice([None, b"x", b"{}"]), b"{}"),
                Fault(),
                Fault(),
            )
        row = self.row(rng)[1:]
        if form == "json" and rng.random() < 0.2:
            raw = payload.encoded(rng, form, (99, *row), ("k", "v", "s"))
        else:
            raw = payload.encoded(rng, form, row, ("v", "s"))
        return self.partition_of(rng, k), (key, raw), row, (k,)

    def changed(self, rng: Random) -> tuple[int, Any, Any, Any]:
        keyed = self.spec["envelope"] == "debezium"
        k = rng.randrange(KEYS)
        key = json.dumps(rng.choice([{"k": k}, {"schema": None, "payload": {"k": k}}])).encode()
        at = self.partition_of(rng, k)
        lot = rng.random()
        if lot < self.spec.get("bad", 0):
            raw = rng.choice([b"nope", b"\xff", b'{"before": 1}', b'{"after": {"k": "x"}}', b"[]"])
            return at, (key, raw), Fault(), (k,)
        if lot < 0.1:
            return at, (key, None), None, (k,)
        before = self.held.get(k)
        after = None if before is not None and rng.random() < 0.3 else (k, *self.row(rng)[1:])
        self.held[k] = after
        self.position += 1
        op = "d" if after is None else "c" if before is None else "u"
        said: dict[str, Any] = {"before": named(before), "after": named(after), "op": op}
        if keyed and rng.random() < 0.3:
            said["before"] = None  # with a key it is not needed
        positioned = self.spec["positions"]
        if positioned == "sequence":
            said["source"] = {"sequence": json.dumps([str(self.position), str(self.position)])}
        elif positioned == "file":
            said["source"] = {"file": "binlog.000009", "pos": self.position, "row": 0}
            if self.position >= 20:
                said["source"] = {"file": "binlog.000010", "pos": self.position - 20, "row": 0}
        if rng.random() < 0.3:
            said = {"schema": {"type": "struct"}, "payload": said}
        position = self.position if positioned else None
        value = Change(before, after, position)
        return at, (key, json.dumps(said).encode()), value, (k,)

    def rows(self, time: int) -> Rows:
        placed = self.placed(time)
        envelope = self.spec["envelope"]
        if envelope in ("debezium", "unkeyed"):
            return captured(placed, keyed=envelope == "debezium")
        if envelope == "upsert":
            return upserted(placed, 3, inline=self.inline)
        width = 1 if self.spec["format"] in ("text", "bytes") else 3
        return appended(placed, width, inline=self.inline)


def named(row: tuple[Any, ...] | None) -> Any:
    return None if row is None else dict(zip(payload.NAMES, row, strict=True))


class Files(Log):
    """One file that grows, or a directory that gets more of them."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.ending = ".gz" if self.spec["kind"].startswith("gzip") else ""
        self.place = self.home / f"{self.name}{self.ending}"
        self.ends: dict[str, int] = {}
        self.rest: dict[str, tuple[bytes, Record]] = {}
        """The end of a line that is not written yet."""
        self.is_directory = self.spec["kind"].endswith("directory")
        if not self.is_directory:
            self.ends[self.place.name] = 0
            self.place.write_bytes(b"")
        else:
            self.place.mkdir()

    def path(self, part: str) -> Path:
        return self.place if not self.spec["kind"].endswith("directory") else self.place / part

    def statements(self) -> list[str]:
        what = "FILE" if not self.spec["kind"].endswith("directory") else "DIRECTORY"
        form = payload.CLAUSES[self.spec["format"]]
        return [
            f"CREATE SOURCE {self.name} {self.columns()} FROM {what} '{self.place}' "
            f"FORMAT {form}{self.options()}"
        ]

    def open_offsets(self) -> dict[str, int]:
        return {part: record.offset for part, (_, record) in self.rest.items()}

    def send(self, rng: Random, run: Any) -> None:
        if self.is_directory and (not self.ends or rng.random() < 0.2):
            part = f"f{len(self.ends)}.{self.spec['format']}{self.ending}"
            self.ends[part] = 0
            self.path(part).write_bytes(b"")
            ignored = rng.choice([".hidden", "_x", "y.tmp", "z.crc"])
            self.path(ignored).write_bytes(b"nothing\n")
        part = rng.choice(sorted(self.ends))
        self.whole(part)
        for _ in range(rng.randint(1, 4)):
            line, record = self.line(rng, part)
            if rng.random() < 0.2:
                self.cut(rng, part, line, record)
                return
            self.add(part, line)
            self.records[part, record.offset] = record

    def cut(self, rng: Random, part: str, line: bytes, record: Record) -> None:
        """Write the beginning of a line."""
        cut = rng.randrange(len(line))
        self.add(part, line[:cut])
        self.rest[part] = line[cut:], record

    def whole(self, part: str) -> None:
        if part in self.rest:
            line, record = self.rest.pop(part)
            self.add(part, line)
            self.records[part, record.offset] = record

    def settle(self, run: Any) -> None:
        for part in list(self.rest):
            self.whole(part)

    def add(self, part: str, some: bytes) -> None:
        with self.path(part).open("ab") as file:
            file.write(some)
        self.ends[part] += len(some)

    def line(self, rng: Random, part: str) -> tuple[bytes, Record]:
        form = self.spec["format"]
        value: Any
        if rng.random() < self.spec.get("bad", 0) and payload.BAD[form]:
            value, raw = Fault(), rng.choice(payload.BAD[form])
        else:
            value = self.row(rng)
            names = payload.NAMES if form != "text" else ("s",)
            raw = payload.encoded(rng, form, value, names)
        line = raw + rng.choice([b"\n", b"\n", b"\r\n"])
        return line, Record(part, self.ends[part], value)

    def rows(self, time: int) -> Rows:
        width = 1 if self.spec["format"] == "text" else 3
        return appended(self.placed(time), width, inline=self.inline)


class Counting(Log):
    """The load generator COUNTER."""

    def statements(self) -> list[str]:
        options = [f"EVENTS PER TICK {self.spec['events']}"]
        if self.spec["max"]:
            options.append(f"MAX_CARDINALITY {self.spec['max']}")
        return [
            f"CREATE SOURCE {self.name} FROM LOAD GENERATOR COUNTER "
            f"({', '.join(options)}){self.options()}"
        ]

    def send(self, rng: Random, run: Any) -> None:
        pass

    def observe(self, steps: Steps) -> None:
        for found in steps.values():
            for offset in range(max(offset for _, offset in found)):
                self.records.setdefault(("0", offset), Record("0", offset, (offset + 1,)))
        super().observe(steps)

    def rows(self, time: int) -> Rows:
        count = len(self.placed(time))
        first = max(0, count - self.spec["max"]) if self.spec["max"] else 0
        return Counter([(n + 1,) for n in range(first, count)])


class Table(Feed):
    """A table, with statements that change it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.states: list[tuple[int, Rows]] = [(0, Counter())]

    def statements(self) -> list[str]:
        keyed = " PRIMARY KEY" if self.spec["keyed"] else ""
        options = self.spec.get("options", [])
        rest = f" WITH ({', '.join(options)})" if options else ""
        return [f"CREATE TABLE {self.name} (k BIGINT{keyed}, v BIGINT, s TEXT){rest}"]

    def send(self, rng: Random, run: Any) -> None:
        rows = Counter(self.states[-1][1])
        k = rng.randrange(KEYS)
        lot = rng.random()
        if lot < 0.6:
            free = [n for n in range(2 * KEYS) if all(r[0] != n for r in rows)]
            keys = rng.sample(free, min(len(free), 2)) if self.spec["keyed"] else [k, k]
            new = [(n, rng.choice([None, *range(12)]), rng.choice(TEXTS)) for n in keys]
            if not new:
                return
            values = ", ".join(f"({_sql(a)}, {_sql(b)}, {_sql(c)})" for a, b, c in new)
            sql = f"INSERT INTO {self.name} VALUES {values}"
            rows.update(new)
        elif lot < 0.8:
            sql = f"UPDATE {self.name} SET v = v + 1, s = 'u' WHERE k = {k}"
            made: Rows = Counter()
            for row, n in rows.items():
                new_v = None if row[1] is None else row[1] + 1
                made[(k, new_v, "u") if row[0] == k else row] += n
            rows = made
        else:
            sql = f"DELETE FROM {self.name} WHERE k = {k} OR v > 9"
            rows = Counter({r: n for r, n in rows.items() if r[0] != k and not (r[1] or 0) > 9})
        written = run.execute(sql)
        before = self.states[-1][0]
        if written.timestamp is None:
            assert rows == self.states[-1][1], f"{sql}: no time"
            return
        assert written.timestamp > before or rows == self.states[-1][1], "a write went back"
        self.states.append((max(int(written.timestamp), before), rows))

    def done(self, upper: int) -> bool:
        return self.states[-1][0] < upper

    def times(self) -> set[int]:
        return {time for time, _ in self.states}

    def rows(self, time: int) -> Rows:
        return [rows for at, rows in self.states if at <= time][-1]


def _sql(value: Any) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"
