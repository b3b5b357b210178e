"""The last hour, for the console's graphs: one sample each ``EVERY_SECONDS``, in memory.

A sample has the counters and lags of that moment; rates are made of two of them by whoever draws.
Memory: a few numbers for each object, ``KEPT`` times.

Tests: tests/server/http/test_picture.py.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from reclock.session.database import Database

EVERY_SECONDS: Final = 5.0
KEPT: Final = 720


class History:
    """Samples of one database, oldest first."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._samples: deque[dict[str, Any]] = deque(maxlen=KEPT)

    def sample(self) -> None:
        """Look once more."""
        facts, meters = self._db.facts, self._db.meters
        total = meters.phases["total"].now()
        self._samples.append(
            {
                "t": self._db.now_ms,
                "lag": {x.name: x.lag_ms for x in facts.timelines() if x.lag_ms is not None},
                "records": {x.name: x.records for x in facts.sources()},
                "behind": {x.name: x.lag_records for x in facts.sources()},
                "changed": {x.name: x.changed for x in facts.objects()},
                "messages": {x.name: x.messages for x in facts.sinks()},
                "ticks": sum(total.buckets),
                "tick_seconds": round(total.total, 6),
            }
        )

    def since(self, ms: int) -> list[dict[str, Any]]:
        """Return the samples after a time."""
        return [sample for sample in tuple(self._samples) if sample["t"] > ms]
