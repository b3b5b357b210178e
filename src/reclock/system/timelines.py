"""``reclock.timelines``: how far reads and writes have gone in each timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.system_relation import Described, system_relation
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    for timeline, state in moment.world.timelines.items():
        if not state.is_own:
            yield str(timeline), int(state.oracle.read_ts), int(state.oracle.write_ts)


TIMELINES = system_relation(
    "timelines",
    "The oracle of each timeline; neither time ever goes back.",
    (
        Described("timeline", TEXT, "the timeline"),
        Described("read_ts", BIGINT, "a strict serializable read is answered at it, or later"),
        Described("write_ts", BIGINT, "the time of the last write; the next one gets a later one"),
    ),
    _rows,
)
