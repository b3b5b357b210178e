"""Keys that a transaction adds: a duplicate is refused by the statement that adds it.

What is there is what is durable when the statement runs, and what the transaction itself has done.
That is early, for the client's sake; COMMIT decides (``constraints``). Keys of ON CONFLICT were
looked up in what the transaction sees: if others have added one since, COMMIT does it again.

Cost: a probe of the keys of the last change; what the transaction did before is counted once.
Tests: tests/session/test_draft.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reclock.arrangement.layout import diff_of
from reclock.engine.constraints import check_keys, key_values, net_keys
from reclock.engine.write import updates_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.catalog.item import Table
    from reclock.catalog.unique import UniqueKey
    from reclock.engine.world import World
    from reclock.engine.write import Change
    from reclock.ids import ObjectId
    from reclock.session.transaction.draft import Draft

_Key = tuple[object, ...]


class Keys:
    """How many rows of each key a transaction has added, net of those that it took away."""

    def __init__(self) -> None:
        self._counted: list[Change] = []
        self._keys: dict[ObjectId, tuple[UniqueKey, ...]] = {}
        self._net: dict[ObjectId, dict[UniqueKey, Counter[_Key]]] = {}

    def check(self, draft: Draft, world: World) -> None:
        """Refuse the last change of a draft if a key of it is there already."""
        changes, counted = draft.changes, self._counted
        same = zip(counted, changes, strict=False)
        undone = len(counted) > len(changes) or any(a is not b for a, b in same)
        keys = {c.table.id: draft.catalog.unique_keys(c.table) for c in changes}
        if undone or any(keys.get(item) != known for item, known in self._keys.items()):
            self._counted, self._net = [], {}
        self._keys = keys
        for change in changes[len(self._counted) :]:
            self._one(draft, world, change)
            self._counted.append(change)

    def _one(self, draft: Draft, world: World, change: Change) -> None:
        table = change.table
        keys = self._keys[table.id]
        if not keys:
            return
        own = self._net.setdefault(table.id, {key: Counter() for key in keys})
        ((_, batch),) = updates_of([change], Timestamp(0))
        there = table.id not in draft.made and table.id in world.catalog.items
        state = world.of(world.catalog[table.id]) if there else None
        looked_up = [key for key in keys if key in change.arbitrated]
        others = [key for key in keys if key not in change.arbitrated]
        check_keys(table, others, state, batch, change.added, own)
        check_keys(table, looked_up, None, batch, change.added, own)
        for key in keys:
            _count(table, key, batch, own[key])


def _count(table: Table, key: UniqueKey, batch: pa.RecordBatch, own: Counter[_Key]) -> None:
    """Add how often each key comes in a change, net of how often it goes."""
    net = net_keys(table, key, batch)
    values = key_values(net.select(range(1 + len(key.columns))))
    for value, diff in zip(values, diff_of(net), strict=True):
        own[value] += int(diff)
