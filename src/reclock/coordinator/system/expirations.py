"""``reclock.expirations``: when dropped future data would begin to matter; nothing expires yet."""

from __future__ import annotations

from reclock.coordinator.system.relation import Described, no_rows, system_relation
from reclock.sql.types import BIGINT, TEXT

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
    no_rows,
)
