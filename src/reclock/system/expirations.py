"""``reclock.expirations``: from when on dataflows keep nothing, and what they have left out.

``expiring`` gives the same as values with names, for the export of metrics: times are whole
milliseconds, counts are of this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reclock.arrangement.shard import count_from
from reclock.catalog.item import Index, MaterializedView
from reclock.catalog.system_relation import Described, system_relation
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.engine.core import Core
    from reclock.engine.system_moment import Moment
    from reclock.engine.world import World


class Expiring(NamedTuple):
    """What is to be said of one dataflow: the columns of the relation."""

    object: str
    expiration: int | None
    """The first time it keeps nothing of, in milliseconds; None: none."""
    reason: str
    dropped: int
    """Updates at later times that this process did not keep."""
    remaining_ms: int | None
    """How far the clock is from the expiration."""
    pending: int
    """Updates that wait for their time in its own temporal filters and schedule."""


def expiring(core: Core, world: World) -> Iterator[Expiring]:
    """Yield what is known of every materialized view, index and followed query, by name."""
    expirations, now = core.expirations, core.clock.now_ms()
    for item in sorted(world.items.values(), key=lambda i: i.name):
        if item.timeline is None or not isinstance(item, MaterializedView | Index):
            continue
        state = world.of(item)
        made = expirations.decision(item, state)
        own = [name for name, views in state.shape.filters.items() if item.id in views]
        untils = [u for name in own if (u := state.arrangements.untils.get(name)) is not None]
        decided = None if made.expiration.is_closed else int(made.expiration.element())
        follows = not own or expirations.is_followed(state.pace)
        end = min(untils, default=decided if follows else None)
        offset = f"compute_replica_expiration_offset is {expirations.lifetime.offset_ms}ms"
        if end is None and decided is not None:
            offset += ", from the next tick on"
        waiting = [run for name in own for run in state.traces[name].runs]
        yield Expiring(
            item.name,
            end,
            made.reason or offset,
            sum(expirations.dropped[name] for name in own),
            None if end is None else end - now,
            sum(count_from(run, state.upper) for run in waiting),
        )


def _rows(moment: Moment) -> Iterator[Expiring]:
    return expiring(moment.core, moment.world)


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
        Described(
            "remaining_ms",
            BIGINT,
            "how long until then, by the clock; NULL: it does not expire",
            nullable=True,
        ),
        Described(
            "pending", BIGINT, "updates that wait for their time in its own filters and schedule"
        ),
    ),
    _rows,
)
