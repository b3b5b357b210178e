"""Envelopes as folds over records, one record after the other, with dictionaries.

What ``dataflow.operators`` does with arrays, as plainly as it can be said. ``fold_of`` begins
one for a source; ``take`` folds all the records of one time in; ``rows`` and ``errors`` are
then what the source holds. Records are tuples of the columns of ``dataflow.envelope``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from reclock.change.value import canonical
from reclock.dataflow.envelope import DEBEZIUM, NONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.dataflow.render.build import Source

Row = tuple[Any, ...]
Fault = tuple[str, str]


class NoneFold:
    """Every record is a row, or an error for ever."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: Counter[Row] = Counter()
        self.errors: Counter[Row] = Counter()

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

    def __init__(self, width: int, key: tuple[int, ...], names: tuple[str, ...]) -> None:
        self.width, self.key, self.names = width, key, names
        self.values: dict[Row, Row] = {}
        self.faults: dict[Row, Fault] = {}
        self.lasting: Counter[Row] = Counter()

    @property
    def rows(self) -> Counter[Row]:
        """One row per key."""
        return Counter(self.values.values())

    @property
    def errors(self) -> Counter[Row]:
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


Fold = NoneFold | UpsertFold


def fold_of(source: Source) -> Fold:
    """Return the fold of a source that has no records yet."""
    width = len(source.schema)
    if source.envelope == NONE:
        return NoneFold(width)
    if source.envelope == DEBEZIUM:
        raise NotImplementedError
    return UpsertFold(width, source.key, tuple(source.schema[i].name for i in source.key))
