"""Publishes a draft: rows and objects at one timestamp, in one append.

Without objects that come or go it is a write (``write``). With them it is a change of the catalog
(``catalog_change``) at whose time the rows happen: new views are filled as of the time before, and
the rows reach them, and all else, in the step that publishes them. New objects have no rows before
that time, so they are read from it on: a table that takes the place of another (ALTER TABLE) is
never seen empty.

Crashes: tests/session/test_transaction_crash.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.engine.catalog_change import change_catalog
from reclock.engine.constraints import check_conditions, check_keys, check_not_null, fitted
from reclock.engine.write import updates_of, write_all
from reclock.session.transaction.draft import removed_and_added

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.session.transaction.draft import Draft
    from reclock.time.timestamp import Timestamp


def publish(core: Core, draft: Draft) -> Timestamp | None:
    """Make a draft over the latest world durable; hold the lock. Return when rows were written."""
    if not draft.edits:
        return write_all(core, draft.changes) if draft.changes else None
    changes = []
    for change in draft.changes:
        check_not_null(change.table, change.added)
        rows = fitted(change.table, change.added)
        check_conditions(core.engine, change.table, rows)
        changes.append(replace(change, added=rows))
    times: list[Timestamp] = []

    def happening(state: TimelineState, time: Timestamp) -> Mapping[ObjectId, pa.RecordBatch]:
        here = [change for change in changes if change.table.timeline == state.pace]
        found = {}
        for table, batch in updates_of(here, time) if here else ():
            given = [change.added for change in here if change.table.id == table.id]
            keys = draft.catalog.unique_keys(table)
            check_keys(table, keys, state, batch, given[-1])
            if batch.num_rows:
                found[table.id] = table.keying.restore(batch)
            times.append(time)
        return found

    added, removed = removed_and_added(core.world.catalog, draft.catalog)
    paces = {change.table.timeline for change in changes if change.table.timeline is not None}
    new = added.keys() - core.world.catalog.items.keys()
    change_catalog(
        core, added.values(), removed,
        roles=draft.roles, changes=happening, also=paces, least=draft.edits,
        late=frozenset(new) if changes else frozenset(),
    )  # fmt: skip
    return times[-1] if times else None
