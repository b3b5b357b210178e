"""Collections that hold one JSON record per key: the shape of the catalog and manifests.

The record of a key is the text ``{"key": …, "value": {…}}``. Changing it retracts the stored text,
exactly as it was read, and adds the new one, and forgets what was before, all in one append:
earlier contents are never read, so one row per key is kept. A collection whose sum is anything else
than one record per key is ``Corrupt``.

Checked by tests/durable/test_keyed.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reclock.durable.store import Append, CollectionState, StoredUpdate
from reclock.errors import Corrupt, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.durable.store import Snapshot
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

Json = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a keyed collection holds when all that is in it has happened."""

    state: CollectionState
    texts: Mapping[str, str]
    """The stored text of each key's record."""

    @classmethod
    def read(cls, snapshot: Snapshot) -> Contents:
        """Return the contents of a snapshot; refuse what is no record or not one per key."""
        counts: dict[str, int] = {}
        for update in snapshot.updates:
            counts[update.data] = counts.get(update.data, 0) + update.diff
        texts: dict[str, str] = {}
        for text, count in counts.items():
            if not count:
                continue
            key = _decode(snapshot.state, text)[0]
            if count != 1 or key in texts:
                message = f'collection "{snapshot.state.collection}" contradicts itself'
                raise Corrupt(message, detail=f'key "{key}" has more than one record')
            texts[key] = text
        return cls(snapshot.state, MappingProxyType(dict(sorted(texts.items()))))

    def values(self) -> dict[str, Json]:
        """Return the value of every key."""
        return {key: _decode(self.state, text)[1] for key, text in self.texts.items()}

    def change(
        self, changes: Mapping[str, Json | None], new_upper: Antichain[Timestamp]
    ) -> tuple[Append, Contents]:
        """Return the append that sets each key to a value, or removes it, and what follows.

        The changes happen at the upper of these contents, which is the expected one.
        """
        texts = dict(self.texts)
        updates: list[StoredUpdate] = []
        for key, value in sorted(changes.items()):
            old = texts.pop(key, None)
            new = None if value is None else _encode(key, value)
            if old is None and new is None:
                message = f'"{key}" is not in collection "{self.state.collection}"'
                raise InvalidValue(message, code="42704")
            if new is not None:
                texts[key] = new
            for text, diff in ((old, -1), (new, 1)):
                if text is not None and old != new:
                    updates.append(StoredUpdate(text, self.state.upper.element(), diff))
        known = self.state
        since = known.upper if updates else known.since
        append = Append(known.collection, tuple(updates), known.upper, new_upper, since)
        after = CollectionState(known.collection, known.version, since, new_upper)
        return append, Contents(after, MappingProxyType(dict(sorted(texts.items()))))


def _encode(key: str, value: Json) -> str:
    record = {"key": key, "value": value}
    try:
        return json.dumps(record, separators=(",", ":"), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        message = f'the value of "{key}" is not JSON'
        raise InvalidValue(message, detail=str(error)) from error


def _decode(state: CollectionState, text: str) -> tuple[str, Json]:
    try:
        record = json.loads(text)
        key, value = record["key"], record["value"]
    except (ValueError, KeyError, TypeError) as error:
        raise _undecodable(state, text) from error
    if not isinstance(key, str) or not isinstance(value, dict):
        raise _undecodable(state, text)
    return key, value


def _undecodable(state: CollectionState, text: str) -> Corrupt:
    message = f'a record of collection "{state.collection}" does not decode'
    return Corrupt(message, detail=f"the record is {text!r}", hint="restore a backup")
