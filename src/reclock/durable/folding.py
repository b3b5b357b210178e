"""Compaction of a collection in tables: the rows that read as one time are summed by data.

A fold is a step of a write transaction. It takes away the rows that a new since folds, and
returns what is to be inserted for them and for what the transaction adds: an update that
cancels a stored one takes its row and is never written. So a collection that is compacted
with every append has one row for each data in it, and no more pages than those need.

Cost: proportional to the rows in (old since, new since], to what is added, and to the rows
that either is summed with. Only data with an update in that interval can have more than one
row (``schema``); of those, only data with several is rewritten. Ticks fold, so the statements
are ``Prepared``.

Checked by tests/durable/test_conformance.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, delete, func, literal_column, select, update

from reclock.durable import rules, schema
from reclock.durable.prepared import Prepared
from reclock.durable.store import StoredUpdate

if TYPE_CHECKING:
    from sqlalchemy import Connection, Dialect

    from reclock.durable.rules import Sums
    from reclock.durable.store import CollectionState
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

_PLACES: Final = [f"digest{n}" for n in range(16)]
"""So many digests are looked for by one statement; the last is repeated in places left over."""

_update = schema.update
_here = and_(_update.c.collection == bindparam("of"), _update.c.time <= bindparam("since"))
_sums = select(_update.c.digest, func.min(_update.c.data), func.sum(_update.c.diff))
_arrived = select(_update.c.digest).where(_here, _update.c.time > bindparam("old"))
_SEVERAL: Final = (
    _sums.where(_here, _update.c.digest.in_(_arrived))
    .group_by(_update.c.digest)
    .having(func.count() > literal_column("1"))
)
_SAME: Final = _sums.where(
    _here, _update.c.digest.in_([bindparam(place) for place in _PLACES])
).group_by(_update.c.digest)
_REMOVE: Final = delete(_update).where(_here, _update.c.digest == bindparam("gone"))
_EMPTY: Final = delete(_update).where(_update.c.collection == bindparam("of"))
_ADVANCE: Final = (
    update(schema.collection)
    .where(schema.collection.c.id == bindparam("of"))
    .values(since=bindparam("to"))
)


class Folding:
    """The statements of a fold, for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._advance = Prepared(_ADVANCE, dialect)
        self._empty = Prepared(_EMPTY, dialect)
        self._several = Prepared(_SEVERAL, dialect)
        self._same = Prepared(_SAME, dialect)
        self._remove = Prepared(_REMOVE, dialect)

    def fold(
        self, writer: Connection, state: CollectionState, since: Antichain[Timestamp], added: Sums
    ) -> list[schema.Row]:
        """Advance since and sum what reads as one time from then on; return the rows to insert.

        ``state`` has the old since; ``added`` are updates that are not stored yet.
        """
        to = schema.column(since)
        self._advance.execute_many(writer, [{"of": state.collection, "to": to}])
        if to is None:
            self._empty.execute_many(writer, [{"of": state.collection}])
            return []
        time, of = since.element(), {"of": state.collection, "since": to}
        found = self._several.all(writer, {**of, "old": schema.column(state.since)})
        digests = [schema.digest(data) for when, data in added if when <= time]
        for start in range(0, len(digests), len(_PLACES)):
            some = digests[start : start + len(_PLACES)]
            some += some[-1:] * (len(_PLACES) - len(some))
            found += self._same.all(writer, {**of, **dict(zip(_PLACES, some, strict=True))})
        stored = {bytes(key): StoredUpdate(data, time, int(diff)) for key, data, diff in found}
        if stored:
            self._remove.execute_many(writer, [{**of, "gone": key} for key in stored])
        moved = (StoredUpdate(data, when.join(time), diff) for (when, data), diff in added.items())
        return schema.update_rows(state.collection, rules.summed((*stored.values(), *moved)))
