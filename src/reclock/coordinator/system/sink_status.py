"""``reclock.sink_status``: how sinks are doing; there are none yet."""

from __future__ import annotations

from reclock.coordinator.system.relation import Described, no_rows, system_relation
from reclock.sql.types import BIGINT, TEXT

SINK_STATUS = system_relation(
    "sink_status",
    "How each sink is doing.",
    (
        Described("sink", TEXT, "the sink"),
        Described("state", TEXT, "`running`, `stalled`, …"),
        Described("frontier", BIGINT, "times before it are written; NULL: all are", nullable=True),
        Described("messages", BIGINT, "messages written by this process"),
        Described("bytes", BIGINT, "their size"),
        Described("in_flight", BIGINT, "messages that are not committed yet"),
        Described("lag_ms", BIGINT, "how long ago it was complete; NULL: never", nullable=True),
        Described("detail", TEXT, "why it is in that state; NULL: nothing to say", nullable=True),
    ),
    no_rows,
)
