"""``reclock.frontiers``: from when on, and up to when, objects can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import RelationItem
from reclock.catalog.system_relation import Described, system_relation, time_or_null
from reclock.sql.types import BIGINT, TEXT
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment
    from reclock.engine.timeline import TimelineState


def _rows(moment: Moment) -> Iterator[Row]:
    items = moment.world.items
    for state in moment.world.timelines.values():
        upper, lag = time_or_null(state.frontier), _lag(state, moment.now_ms)
        for item, since in state.sinces.items():
            shown = items[item]
            if isinstance(shown, RelationItem):
                since = moment.world.bounds(shown).since  # noqa: PLW2901
            yield shown.name, time_or_null(since), upper, lag


def _lag(state: TimelineState, now_ms: int) -> int | None:
    """Return how long ago the last complete time is."""
    if state.timeline != EPOCH_MS:
        return None
    upper = state.frontier
    return 0 if upper.is_closed else max(0, now_ms + 1 - upper.element())


FRONTIERS = system_relation(
    "frontiers",
    "The times at which each object that keeps rows can be read: `since ≤ t < upper`.",
    (
        Described("object", TEXT, "a table, source, materialized view or index"),
        Described("since", BIGINT, "the first time that is kept; NULL: none", nullable=True),
        Described(
            "upper", BIGINT, "the first time that is not complete; NULL: all are", nullable=True
        ),
        Described(
            "lag_ms",
            BIGINT,
            "how long ago the last complete time is; NULL: its timeline has no clock",
            nullable=True,
        ),
    ),
    _rows,
)
