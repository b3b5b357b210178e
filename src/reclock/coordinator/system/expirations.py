"""``reclock.expirations``: from when on dataflows keep nothing, and what they have left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.expirations import reads_of
from reclock.coordinator.item import Index, MaterializedView, RelationItem
from reclock.coordinator.system.relation import Described, system_relation
from reclock.sql.types import BIGINT, TEXT
from reclock.time.expiry import DataflowKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.coordinator.item import Item
    from reclock.coordinator.system.relation import Moment, Row


def _rows(moment: Moment) -> Iterator[Row]:
    world, expirations = moment.world, moment.core.expirations
    for item in sorted(world.items.values(), key=lambda i: i.name):
        if item.timeline is None or not isinstance(item, MaterializedView | Index):
            continue
        state = world.of(item)
        made = expirations.decision(_kind(item, moment), state, _reads(item, moment))
        own = [name for name, views in state.shape.filters.items() if item.id in views]
        untils = [u for name in own if (u := state.arrangements.untils.get(name)) is not None]
        expiration = None if made.expiration.is_closed else int(made.expiration.element())
        reason = made.reason or f"compute_replica_expiration_offset is {_offset(moment)}"
        dropped = sum(expirations.dropped[name] for name in own)
        yield item.name, min(untils, default=expiration), reason, dropped


def _kind(item: Item, moment: Moment) -> DataflowKind:
    if isinstance(item, Index):
        return DataflowKind.INDEX
    passing = item.id in moment.world.transients
    return DataflowKind.SUBSCRIBE if passing else DataflowKind.MATERIALIZED_VIEW


def _reads(item: MaterializedView | Index, moment: Moment) -> list[str]:
    if isinstance(item, MaterializedView):
        return reads_of(item.plan)
    on = moment.world.items[item.on]
    assert isinstance(on, RelationItem)
    return [on.name]


def _offset(moment: Moment) -> str:
    return f"{moment.core.expirations.lifetime.offset_ms}ms"


EXPIRATIONS = system_relation(
    "expirations",
    "Objects that keep no updates from some time on.",
    (
        Described("object", TEXT, "the object"),
        Described(
            "expiration", BIGINT, "the first time it keeps nothing of; NULL: none", nullable=True
        ),
        Described("reason", TEXT, "why it expires, or does not"),
        Described("dropped", BIGINT, "updates at later times that were not kept"),
    ),
    _rows,
)
