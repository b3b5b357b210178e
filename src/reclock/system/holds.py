"""``reclock.holds``: who keeps whose history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.system_relation import Described, system_relation, time_or_null
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    items = moment.world.items
    for held in moment.core.holds.rows():
        item = items.get(held.object)
        name = held.object if item is None else item.name
        yield name, held.holder, time_or_null(held.since)


HOLDS = system_relation(
    "holds",
    "Who keeps history: the since of an object does not pass what is held.",
    (
        Described("object", TEXT, "what is held; its id if it is dropped already"),
        Described("holder", TEXT, "who holds it: `subscribe/4`, `transaction/2`, …"),
        Described("since", BIGINT, "the first time that is held; NULL: none", nullable=True),
    ),
    _rows,
)
