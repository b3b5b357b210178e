"""Writes to tables, durable from the moment they are acknowledged until a tick folds them.

The collection ``wal/<timeline>`` holds a record per write and table, of a large write several::

    {"v": 1, "table": "u3", "seq": 17, "run": {…}}        at the write's timestamp, +1

``run`` is the reference of a run in the table's own layout: the rows are inline, or, when
there are many, in a segment. A tick takes all entries, and retires them with −1 in the
transaction that publishes what they became. So an entry is pending exactly when its rows
are in no run of the table's collection; nothing is lost or counted twice by any crash. Entries
that come while a tick computes have later times than the tick closes, and stay. Those of a table
that is dropped meanwhile are retired with it.

The collection's upper W is the frontier of all tables of the timeline: a write at w needs
W ≤ w and moves W to {w+1}; a tick closes the times before its upper.

Cost: a write is one record; what is pending is kept in memory too. A record goes for good when it
is retired: earlier contents are never read.

Tests: tests/engine/test_write_log.py.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reclock.arrangement.run import RunRef
from reclock.durable.store import Append, StoredUpdate
from reclock.errors import Corrupt, NewerFormat
from reclock.ids import CollectionId, ObjectId
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reclock.durable.store import Snapshot, Store
    from reclock.time.frontier import Frontier
    from reclock.time.timeline import Timeline
    from reclock.time.timestamp import Timestamp

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The rows that one write added to, and took from, one table."""

    table: ObjectId
    sequence: int
    run: RunRef
    text: str
    """The record as it is stored: retiring it needs the same text."""

    @property
    def time(self) -> Timestamp:
        """When it was written."""
        return self.run.description.lower.element()


@dataclass(frozen=True, slots=True)
class Wal:
    """What is pending in a timeline, oldest first, and the frontier of its tables."""

    collection: CollectionId
    upper: Frontier
    pending: tuple[Entry, ...] = ()

    @classmethod
    def open(cls, store: Store, timeline: Timeline) -> Wal:
        """Return the log of a timeline, creating an empty one if there is none."""
        collection = CollectionId(f"wal/{timeline}")
        store.open(collection, VERSION)
        snapshot = store.snapshot(collection)
        entries = _pending(snapshot)
        return cls(collection, snapshot.upper, tuple(sorted(entries, key=lambda e: e.sequence)))

    @classmethod
    def without_tables(cls) -> Wal:
        """Return the log where nothing is ever written."""
        return cls(CollectionId(""), at(0))

    @property
    def next_sequence(self) -> int:
        """The number of the next entry; numbers only tell pending entries apart."""
        return self.pending[-1].sequence + 1 if self.pending else 0

    def of_table(self, table: ObjectId) -> tuple[Entry, ...]:
        """Return what is pending for a table."""
        return tuple(entry for entry in self.pending if entry.table == table)

    def write(self, time: Timestamp, runs: Sequence[tuple[ObjectId, RunRef]]) -> tuple[Append, Wal]:
        """Return the append that writes ``runs`` of tables at ``time``, and the log after it."""
        entries = []
        for sequence, (table, run) in enumerate(runs, self.next_sequence):
            record = {"v": VERSION, "table": table, "seq": sequence, "run": run.to_json()}
            text = json.dumps(record, separators=(",", ":"), sort_keys=True)
            entries.append(Entry(table, sequence, run, text))
        new_upper = at(time.step())
        updates = tuple(StoredUpdate(entry.text, time, 1) for entry in entries)
        append = Append(self.collection, updates, self.upper, new_upper)
        return append, replace(self, upper=new_upper, pending=(*self.pending, *entries))

    def retire(self, time: Timestamp) -> tuple[Append, Wal]:
        """Return the append that retires the entries up to ``time``, and closes that time.

        Later ones stay. The record is at a time that can still be written: it may be a later one.
        """
        noted = time.join(self.upper.element())
        gone = tuple(StoredUpdate(e.text, noted, -1) for e in self.pending if e.time <= time)
        left = tuple(entry for entry in self.pending if entry.time > time)
        if not gone and time < noted:
            return Append(self.collection, (), self.upper, self.upper), replace(self, pending=left)
        new_upper = at(noted.step())
        append = Append(self.collection, gone, self.upper, new_upper, since=at(noted))
        return append, Wal(self.collection, new_upper, left)

    def without(self, tables: Collection[ObjectId]) -> tuple[Append, Wal]:
        """Return the append that retires all that is pending for some tables, and the log after."""
        noted = self.upper.element()
        gone = tuple(StoredUpdate(e.text, noted, -1) for e in self.pending if e.table in tables)
        left = tuple(entry for entry in self.pending if entry.table not in tables)
        new_upper = at(noted.step())
        append = Append(self.collection, gone, self.upper, new_upper, since=at(noted))
        return append, Wal(self.collection, new_upper, left)


def _pending(snapshot: Snapshot) -> list[Entry]:
    counts: Counter[str] = Counter()
    for update in snapshot.updates:
        counts[update.data] += update.diff
    return [_decode(text) for text, count in counts.items() if count]


def _decode(text: str) -> Entry:
    try:
        record = json.loads(text)
        version, table, sequence = record["v"], ObjectId(record["table"]), int(record["seq"])
        run = record["run"]
    except (ValueError, KeyError, TypeError) as error:
        message = "a write to a table does not decode"
        raise Corrupt(message, detail=f"the record is {text!r:.200}") from error
    if version > VERSION:
        message = f"a write to a table has format {version}, newer than {VERSION}"
        raise NewerFormat(message, hint="open the state with a later reclock")
    return Entry(table, sequence, RunRef.from_json(run), text)
