"""``reclock.objects``: what users have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.system_relation import Described, system_relation
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    for item in moment.world.catalog.items.values():
        timeline = None if item.timeline is None else str(item.timeline)
        yield item.id, item.name, item.kind, timeline, item.sql, item.owner


OBJECTS = system_relation(
    "objects",
    "Every table, view, materialized view, index, sequence, source, sink, connection and secret.",
    (
        Described("id", TEXT, "its id, which no other object ever has"),
        Described("name", TEXT, "its name, which no other object has now"),
        Described("kind", TEXT, "`table`, `view`, `materialized view`, `index`, …"),
        Described("timeline", TEXT, "what its times mean; NULL: it is constant", nullable=True),
        Described("sql", TEXT, "the statement that made it"),
        Described(
            "owner",
            TEXT,
            "the role it belongs to; NULL: the user who opens the database",
            nullable=True,
        ),
    ),
    _rows,
)
