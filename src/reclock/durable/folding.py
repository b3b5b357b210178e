"""Compaction of a collection in tables: the rows that read as one time are summed by data.

``fold`` is a step of a write transaction. It takes away the rows that a new since folds, and
returns what is to be inserted for them and for what the transaction adds: an update that
cancels a stored one takes its row and is never written. So a collection that is compacted
with every append has one row for each data in it, and no more pages than those need.

Cost: proportional to the rows in (old since, new since], to what is added, and to the rows
that either is summed with. Only data with an update in that interval can have more than one
row (``schema``); of those, only data with several is rewritten.

Checked by ``reclock.testing.store_conformance`` (tests/durable/test_conformance.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, delete, func, select, update

from reclock.durable import rules, schema
from reclock.durable.store import StoredUpdate

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from reclock.durable.rules import Sums
    from reclock.durable.store import CollectionState
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

_ASKED_AT_ONCE: Final = 500
"""So many digests fit into one statement of either database."""

_update = schema.update
_here = and_(_update.c.collection == bindparam("of"), _update.c.time <= bindparam("since"))
_sums = select(_update.c.digest, func.min(_update.c.data), func.sum(_update.c.diff))
_arrived = select(_update.c.digest).where(_here, _update.c.time > bindparam("old"))
_SEVERAL: Final = (
    _sums.where(_here, _update.c.digest.in_(_arrived))
    .group_by(_update.c.digest)
    .having(func.count() > 1)
)
_SAME: Final = _sums.where(
    _here, _update.c.digest.in_(bindparam("digests", expanding=True))
).group_by(_update.c.digest)
_GONE: Final = delete(_update).where(_here, _update.c.digest == bindparam("gone"))
_ALL: Final = delete(_update).where(_update.c.collection == bindparam("of"))
_ADVANCE: Final = (
    update(schema.collection)
    .where(schema.collection.c.id == bindparam("at"))
    .values(since=bindparam("to"))
)


def fold(
    writer: Connection,
    state: CollectionState,
    since: Antichain[Timestamp],
    added: Sums,
) -> list[schema.Row]:
    """Advance since and sum what reads as one time from then on; return the rows to insert.

    ``state`` has the old since; ``added`` are updates that are not stored yet.
    """
    writer.execute(_ADVANCE, {"at": state.collection, "to": schema.column(since)})
    if since.is_closed:
        writer.execute(_ALL, {"of": state.collection})
        return []
    time = since.element()
    of = {"of": state.collection, "since": int(time)}
    found = [*writer.execute(_SEVERAL, {**of, "old": schema.column(state.since)})]
    digests = [schema.digest(data) for when, data in added if when <= time]
    for start in range(0, len(digests), _ASKED_AT_ONCE):
        asked = digests[start : start + _ASKED_AT_ONCE]
        found += writer.execute(_SAME, {**of, "digests": asked})
    stored = {digest: StoredUpdate(data, time, int(diff)) for digest, data, diff in found}
    if stored:
        writer.execute(_GONE, [{**of, "gone": digest} for digest in stored])
    moved = (StoredUpdate(data, when.join(time), diff) for (when, data), diff in added.items())
    return schema.update_rows(state.collection, rules.summed((*stored.values(), *moved)))
