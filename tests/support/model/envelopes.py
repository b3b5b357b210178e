"""Envelopes as folds over records, one record after the other, with dictionaries.

What ``dataflow.operators`` does with arrays, as plainly as it can be said. ``fold_of`` begins
one for a source; ``take`` folds all the records of one time in; ``rows`` and ``errors`` are
then what the source holds. Records are tuples of the columns of ``dataflow.envelope``.
``held`` is all that a fold goes on from, as rows: a new one begins there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from reclock.change.value import canonical
from reclock.dataflow.envelope import NONE, UPSERT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.dataflow.render.source import Source

Row = tuple[Any, ...]
Rows = Counter[Row]
Fault = tuple[str, str]


class Held(NamedTuple):
    """What a source holds: rows and errors, the keys with a fault, the positions it reached."""

    rows: Rows
    errors: Rows
    faults: Rows
    positions: Rows

    @classmethod
    def nothing(cls) -> Held:
        """Return what a source holds before its first record."""
        return cls(Counter(), Counter(), Counter(), Counter())


class NoneFold:
    """Every record is a row, or an error for ever."""

    def __init__(self, width: int, held: Held) -> None:
        self.width = width
        self.rows, self.errors = Counter(held.rows), Counter(held.errors)

    def held(self) -> Held:
        """Return what a fold goes on from."""
        return Held(Counter(self.rows), Counter(self.errors), Counter(), Counter())

    def take(self, records: Iterable[Row]) -> None:
        """Fold the records of one time in."""
        for record in map(canonical, records):
            *_, code, message = record
            if code is None:
                self.rows[record[: self.width]] += 1
            else:
                self.errors[code, message] += 1


class UpsertFold:
    """Every key has what its last record says."""

    def __init__(self, source: Source, held: Held) -> None:
        self.width, self.key = len(source.schema), source.key
        self.names = tuple(source.schema[i].name for i in source.key)
        self.values = {tuple(row[i] for i in source.key): row for row in held.rows}
        self.faults: dict[Row, Fault] = {row[:-2]: (row[-2], row[-1]) for row in held.faults}
        self.lasting = held.errors - Counter(self.faults.values())

    def held(self) -> Held:
        """Return what a fold goes on from."""
        faults = Counter((*key, *fault) for key, fault in self.faults.items())
        return Held(self.rows, self.errors, faults, Counter())

    @property
    def rows(self) -> Rows:
        """One row per key."""
        return Counter(self.values.values())

    @property
    def errors(self) -> Rows:
        """The errors of keys, and those that have none."""
        return self.lasting + Counter(self.faults.values())

    def take(self, records: Iterable[Row]) -> None:
        """Fold the records of one time in, by their order."""
        for record in sorted(records, key=lambda record: record[self.width]):
            self._apply(canonical(record))

    def _apply(self, record: Row) -> None:
        _order, tombstone, code, message = record[self.width :]
        key = tuple(record[i] for i in self.key)
        if None in key:
            name = self.names[key.index(None)]
            lost = "23502", f'null value in column "{name}" of the key'
            self.lasting[lost if code is None else (code, message)] += 1
            return
        self.values.pop(key, None)
        self.faults.pop(key, None)
        if code is not None:
            self.faults[key] = code, message
        elif not tombstone:
            self.values[key] = record[: self.width]


class CountFold:
    """Rows come and go; one that goes and is not there is an error for ever."""

    def __init__(self, held: Held) -> None:
        self.rows, self.errors = Counter(held.rows), Counter(held.errors)

    def held(self) -> Held:
        """Return what a fold goes on from."""
        return Held(Counter(self.rows), Counter(self.errors), Counter(), Counter())

    def take(self, changes: Iterable[tuple[Row, int]]) -> None:
        """Fold the changes of one time in, all at once."""
        for row, diff in changes:
            self.rows[row] += diff
        for row, count in list(self.rows.items()):
            if count < 0:
                self.errors["22000", "a row was taken away that was not there"] -= count
            if count <= 0:
                del self.rows[row]


class DebeziumFold:
    """Changes of a table: those that were not seen before, one after the other."""

    def __init__(self, source: Source, held: Held) -> None:
        self.width = len(source.schema)
        self.said = self.width - source.included
        self.inner = UpsertFold(source, held) if source.key else CountFold(held)
        self.reached: dict[int, tuple[Row, set[bytes]]] = {}
        """By partition, the greatest position and the records at it."""
        for partition, *position, event in held.positions:
            self.reached.setdefault(partition, (tuple(position), set()))[1].add(event)

    def held(self) -> Held:
        """Return what a fold goes on from."""
        positions: Rows = Counter(
            (partition, *position, event)
            for partition, (position, events) in self.reached.items()
            for event in events
        )
        return self.inner.held()._replace(positions=positions)

    @property
    def rows(self) -> Rows:
        """The rows of the table."""
        return self.inner.rows

    @property
    def errors(self) -> Rows:
        """The errors of records, and those of what they were applied to."""
        return self.inner.errors

    def take(self, records: Iterable[Row]) -> None:
        """Fold the records of one time in, by their order."""
        ordered = sorted(records, key=lambda record: record[-3])
        fresh = [record for record in map(canonical, ordered) if self._fresh(record)]
        if isinstance(self.inner, UpsertFold):
            key = self.inner.key
            self.inner.take([made for record in fresh for made in self._keyed(record, key)])
        else:
            self.inner.take([made for record in fresh for made in self._changes(record)])

    def _fresh(self, record: Row) -> bool:
        said = record[2 * self.width :]
        op, partition, position = said[2], said[3], said[4:7]
        if op == "r" or position[0] is None:
            return True
        rows = record[: self.said], record[self.width : self.width + self.said]
        event = repr((*rows, *said[:3], *said[-2:])).encode()
        reached, events = self.reached.get(partition, ((), set()))
        same = position == reached
        if _nulls_first(position) < _nulls_first(reached) or (same and event in events):
            return False
        self.reached[partition] = position, {event} | (events if same else set())
        return True

    def _fault(self, record: Row, *, keyed: bool) -> Fault | None:
        has_before, has_after, op, *_, code, message = record[2 * self.width :]
        name = "NULL" if op is None else f'"{op}"'
        if code is not None:
            return code, message
        if op not in {"c", "r", "u", "d"}:
            return "22000", f"unknown operation {name}"
        if op != "d" and not has_after:
            return "22000", f"operation {name} without the row after"
        if op in {"u", "d"} and not has_before and not keyed:
            advice = "declare a PRIMARY KEY or set the table's REPLICA IDENTITY FULL"
            return "22000", f"operation {name} without the row before: {advice}"
        return None

    def _silent(self, record: Row) -> bool:
        has_before, has_after, op, *_, code, _message = record[2 * self.width :]
        return not has_before and not has_after and op is None and code is None

    def _keyed(self, record: Row, key: tuple[int, ...]) -> list[Row]:
        if self._silent(record):
            return []
        after, before = record[: self.width], record[self.width : 2 * self.width]
        has_before, has_after, op, *_, order, _code, _message = record[2 * self.width :]
        fault = self._fault(record, keyed=True) or (None, None)
        old = [before[i] for i in key]
        known = has_before and None not in old
        made = []
        moved = known and has_after and old != [after[i] for i in key]
        if op == "u" and moved and fault[0] is None:
            made.append((*before, order, True, None, None))
        if known and (op == "d" or not has_after):
            after = before
        return [*made, (*after, order, op == "d", *fault)]

    def _changes(self, record: Row) -> list[tuple[Row, int]]:
        if self._silent(record):
            return []
        fault = self._fault(record, keyed=False)
        if fault is not None:
            self.inner.errors[fault] += 1
            return []
        op = record[2 * self.width + 2]
        made = [] if op == "d" else [(record[: self.width], 1)]
        if op in {"u", "d"}:
            made.append((record[self.width : 2 * self.width], -1))
        return made


Fold = NoneFold | UpsertFold | DebeziumFold


def fold_of(source: Source, held: Held | None = None) -> Fold:
    """Return the fold of a source, from what it holds; without, from nothing."""
    begin = Held(*(_canonical(rows) for rows in held)) if held else Held.nothing()
    if source.envelope == NONE:
        return NoneFold(len(source.schema), begin)
    return UpsertFold(source, begin) if source.envelope == UPSERT else DebeziumFold(source, begin)


def _canonical(rows: Rows) -> Rows:
    return Counter({canonical(row): count for row, count in rows.items() if count})


def _nulls_first(position: Row) -> Row:
    return tuple((part is not None, part) for part in position)
