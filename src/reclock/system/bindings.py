"""``reclock.bindings``: which positions of a source became visible when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.system_relation import Described, system_relation
from reclock.remap.progress import binding_rows
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    """Yield the bindings that there were at the time of the query."""
    for state in moment.world.timelines.values():
        for item, bindings in state.bindings.items():
            name = moment.world.items[item].name
            as_of = moment.as_of(state, state.sinces[item].element())
            for bound in binding_rows(bindings.remap):
                if bound.timestamp <= as_of:
                    yield name, int(bound.timestamp), str(bound.partition), bound.offset


BINDINGS = system_relation(
    "bindings",
    "The durable map from times to positions of sources, as far back as it is kept.",
    (
        Described("source", TEXT, "the source"),
        Described("timestamp", BIGINT, "a time at which more became visible"),
        Described("partition", TEXT, "a partition, by its number, or a file, by its name"),
        Described("offset", BIGINT, "offsets below it belong to times at or before `timestamp`"),
    ),
    _rows,
)
