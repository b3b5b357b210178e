"""Changes by key: ENVELOPE UPSERT and ENVELOPE DEBEZIUM.

At each time, for each key that is touched, with the rows it had before and has after::

    before → after          UPSERT            DEBEZIUM
    none   → one            upsert            insert          after
    one    → another        upsert            upsert          before, after
    one    → none           delete (NULLs)    delete          before
    any    → several        key_violation (NULLs)
    several → one           upsert            upsert          after
    several → none          delete (NULLs)    delete

A key with several rows is reported at every time at which it is touched, and again when it
is right. If the plan proves the key unique, the change alone says all of this. Otherwise the
rows by key must be known: they are kept in memory, as much as the relation has rows.

Tests: tests/subscribe/test_subscribe_properties.py, against a model.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from reclock.change.value import sort_key
from reclock.engine.update import Update

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.time.timestamp import Timestamp

Row = tuple[Any, ...]


class Envelope:
    """Turns the updates of one time after the other into changes by key."""

    def __init__(self, kind: str, key: tuple[int, ...], width: int, *, unique: bool) -> None:
        self._debezium = kind == "debezium"
        self._key = key
        self._rest = tuple(at for at in range(width) if at not in key)
        self._unique = unique
        self._counts: dict[object, Counter[object]] = {}
        self._rows: dict[object, Row] = {}

    @property
    def needs_snapshot(self) -> bool:
        """Whether the rows must be known, also when they are not given."""
        return not self._unique

    def apply(self, time: Timestamp, updates: Iterable[Update]) -> list[Update]:
        """Return the changes by key of all updates of one time."""
        touched: dict[object, list[Update]] = {}
        for update in updates:
            assert update.row is not None
            name: object = sort_key(tuple(update.row[at] for at in self._key))
            touched.setdefault(name, []).append(update)
        made = []
        for key, some in touched.items():
            before, after = self._change(key, some)
            change = self._told(time, some, before, after)
            if change is not None:
                made.append(change)
        return made

    def _change(self, key: object, updates: Sequence[Update]) -> tuple[list[Row], list[Row]]:
        """Return the rows of a key before and after, each as often as it is there."""
        if self._unique:
            return _repeated(updates, -1), _repeated(updates, 1)
        counts = self._counts.get(key, Counter())
        before = self._present(counts)
        for update in updates:
            assert update.row is not None
            assert update.diff is not None
            name = sort_key(update.row)
            self._rows[name] = update.row
            counts[name] += update.diff
            if not counts[name]:
                del counts[name]
        after = self._present(counts)
        for update in updates:
            name = sort_key(update.row)
            if name not in counts:
                self._rows.pop(name, None)
        if counts:
            self._counts[key] = counts
        else:
            self._counts.pop(key, None)
        return before, after

    def _present(self, counts: Counter[object]) -> list[Row]:
        return [self._rows[name] for name, count in counts.items() for _ in range(min(count, 2))]

    def _told(
        self, time: Timestamp, updates: Sequence[Update], before: list[Row], after: list[Row]
    ) -> Update | None:
        some = updates[0].row
        assert some is not None
        key = tuple(some[at] for at in self._key)
        if len(after) > 1:
            return self._made(time, "key_violation", key, None, None)
        old = before[0] if len(before) == 1 else None
        if after:
            if old is not None and sort_key(old) == sort_key(after[0]):
                return None
            state = "upsert" if before or not self._debezium else "insert"
            return self._made(time, state, key, old, after[0])
        return self._made(time, "delete", key, old, None) if before else None

    def _made(
        self, time: Timestamp, state: str, key: Row, before: Row | None, after: Row | None
    ) -> Update:
        sides = (before, after) if self._debezium else (after,)
        values = tuple(None if row is None else row[at] for row in sides for at in self._rest)
        return Update(time, row=(*key, *values), state=state)


def _repeated(updates: Sequence[Update], sign: int) -> list[Row]:
    """Return the rows that come (1) or go (−1), two of each at most."""
    return [
        u.row for u in updates if u.row is not None for _ in range(min(2, sign * (u.diff or 0)))
    ]
