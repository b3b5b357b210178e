"""System relations: the state of the system as rows, in the schema ``reclock``.

One file per relation: its columns, what they mean, and a function that gives its rows at a
``Moment``. Planning sees a relation of no timeline, like a constant, so it joins anything.
When a query is answered, ``answer`` puts the rows of that moment in its place: the rows of
one SELECT, of all system relations in it, come from the world that answers the rest of it.

They have no history, so nothing can be maintained over them: materialized views, indexes
and subscribes are refused. Their names are always qualified: ``reclock.ticks``. Users can
neither make nor drop anything in their schema.

Tests: tests/system/test_system.py and its siblings; columns: docs/system-relations.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.system.arrangement_sizes import ARRANGEMENT_SIZES
from reclock.system.bindings import BINDINGS
from reclock.system.dead_letters import DEAD_LETTERS
from reclock.system.errors import ERRORS
from reclock.system.expirations import EXPIRATIONS
from reclock.system.frontiers import FRONTIERS
from reclock.system.holds import HOLDS
from reclock.system.objects import OBJECTS
from reclock.system.settings import SETTINGS
from reclock.system.sink_status import SINK_STATUS
from reclock.system.source_status import SOURCE_STATUS
from reclock.system.source_transactions import SOURCE_TRANSACTIONS
from reclock.system.ticks import TICKS
from reclock.system.timelines import TIMELINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.catalog.system_relation import SystemRelation
    from reclock.ids import ObjectId

RELATIONS: Final[Mapping[ObjectId, SystemRelation]] = {
    relation.id: relation
    for relation in (
        OBJECTS,
        FRONTIERS,
        BINDINGS,
        TIMELINES,
        ARRANGEMENT_SIZES,
        TICKS,
        ERRORS,
        SETTINGS,
        HOLDS,
        SOURCE_STATUS,
        SOURCE_TRANSACTIONS,
        DEAD_LETTERS,
        SINK_STATUS,
        EXPIRATIONS,
    )
}
"""All system relations, in the order in which they are documented; an id is the full name."""
