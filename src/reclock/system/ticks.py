"""``reclock.ticks``: what the last ticks cost, phase by phase (``tick_log``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.system_relation import Described, system_relation
from reclock.engine.tick_log import KEPT
from reclock.sql.types import BIGINT, DOUBLE, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    return moment.core.ticks.rows()


TICKS = system_relation(
    "ticks",
    f"The last {KEPT} ticks of this process, five rows each.",
    (
        Described("timestamp", BIGINT, "the last time that the tick made complete"),
        Described("phase", TEXT, "`gather`, `compute`, `write`, `publish`, or `total` of these"),
        Described("millis", DOUBLE, "how long the phase took"),
        Described(
            "rows",
            BIGINT,
            "updates: taken in by `gather`, made by `compute`, and in the runs of the other three",
        ),
        Described("place", TEXT, "where they were computed: `driver`, or `spark` tasks"),
        Described("driver_rows", BIGINT, "how many of the rows the driver had in its memory"),
        Described("tasks", BIGINT, "how many Spark tasks computed them"),
        Described("shuffled_bytes", BIGINT, "how many bytes these tasks sent one another"),
    ),
    _rows,
)
