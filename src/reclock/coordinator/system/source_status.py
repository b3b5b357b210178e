"""``reclock.source_status``: how sources are doing; there are none yet."""

from __future__ import annotations

from reclock.coordinator.system.relation import Described, no_rows, system_relation
from reclock.sql.types import BIGINT, TEXT

SOURCE_STATUS = system_relation(
    "source_status",
    "How each source is doing.",
    (
        Described("source", TEXT, "the source"),
        Described("state", TEXT, "`running`, `stalled`, …"),
        Described("rows", BIGINT, "records read by this process"),
        Described("bytes", BIGINT, "their size"),
        Described("errors", BIGINT, "how many of them do not decode"),
        Described("upstream", BIGINT, "records there are; NULL: not known", nullable=True),
        Described("bound", BIGINT, "how many of them have a time; NULL: none yet", nullable=True),
        Described("lag_ms", BIGINT, "how long ago it was complete; NULL: never", nullable=True),
        Described("detail", TEXT, "why it is in that state; NULL: nothing to say", nullable=True),
    ),
    no_rows,
)
