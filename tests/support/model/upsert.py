"""The upsert envelope: a log of (key, value) messages as a collection.

Definition. At time t the collection holds, for each key, the value of its last message at
or before t, unless that message is a tombstone (no value)::

    out[t] = { key + value : value of the message of key that is last by (time, offset) ≤ t }

so of several messages for one key at one time only the last by offset counts, and what was
there before is retracted. A key lives in one partition, where offsets are comparable and
never go back while time goes forward; messages that break this are refused.
(Messages without a key are error rows of their source and never come here.)

Checked against a dictionary replayed message by message: tests/change/test_model.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from model.consolidate import Rows, changes
from reclock.change.value import Row, canonical
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.change.update import Update
    from reclock.time.timestamp import Timestamp


class Upsert(NamedTuple):
    """One message of the log; ``value`` is ``None`` for a tombstone."""

    key: Row
    value: Row | None
    time: Timestamp
    offset: int


def upsert(messages: Iterable[Upsert]) -> list[Update[Any, Timestamp]]:
    """Return the collection of the last values.

    >>> from reclock.time.timestamp import Timestamp as T
    >>> log = [Upsert((1,), ("a",), T(5), 0), Upsert((1,), ("b",), T(5), 1),
    ...        Upsert((1,), None, T(7), 2)]
    >>> for update in upsert(log): print(*update)
    (1, 'b') 5 1
    (1, 'b') 7 -1
    """
    log = sorted(messages, key=lambda message: message.offset)
    _check(log)
    out: list[Update[Any, Timestamp]] = []
    before: Rows = Counter()
    for time in sorted({message.time for message in log}):
        last = {canonical(m.key): m.value for m in log if m.time <= time}
        after = Counter(key + canonical(v) for key, v in last.items() if v is not None)
        out += changes(before, after, time)
        before = after
    return out


def _check(log: list[Upsert]) -> None:
    """Refuse offsets that repeat, and times that go back, among the messages of a key."""
    seen: dict[Row, Upsert] = {}
    for message in log:
        key = canonical(message.key)
        earlier = seen.get(key)
        if earlier is not None and (
            earlier.offset == message.offset or message.time < earlier.time
        ):
            text = f"messages of key {message.key!r} are not in one order of offsets and times"
            raise InvalidValue(text, detail=f"{earlier} and {message}")
        seen[key] = message
