"""The last hour, for the console's graphs: one sample each ``EVERY_SECONDS``, in memory.

A sample has the lags and the sums of counters of that moment; a reader derives rates from two of
them. It is kept as the text of JSON that it is sent as, so that an hour is sent without being
written again. Memory: about 200 bytes and a few for each timeline and source, ``KEPT`` times.

Tests: tests/server/http/test_picture.py.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from reclock.server.http.values import dumps

if TYPE_CHECKING:
    from reclock.session.database import Database

EVERY_SECONDS: Final = 5.0
KEPT: Final = 720


class History:
    """Samples of one database, oldest first."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._samples: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._last: deque[dict[str, Any]] = deque(maxlen=10)

    def sample(self) -> None:
        """Look once more; metrics tell of faults what was seen then."""
        facts, meters, now = self._db.facts, self._db.meters, self._db.now_ms
        facts.faults.look()
        total, moving = meters.phases["total"].now(), facts.moving()
        made = {
            "t": now,
            "lag": {x.name: x.lag_ms for x in moving.timelines if x.lag_ms is not None},
            "behind": {x.name: x.lag_records for x in moving.sources if not x.is_log},
            "log": {x.name: x.lag_bytes for x in moving.sources if x.is_log},
            "read": sum(x.records for x in moving.sources),
            "changed": sum(x.changed for x in facts.objects()),
            "written": sum(x.messages for x in moving.sinks),
            "ticks": sum(total.buckets),
            "tick_seconds": round(total.total, 6),
        }
        self._last.append(made)
        self._samples.append((now, dumps(made)))

    def last(self, count: int) -> list[dict[str, Any]]:
        """Return the last few samples."""
        return list(self._last)[-count:]

    def since(self, ms: int) -> bytes:
        """Return the samples after a time, as JSON."""
        found = [text for at, text in tuple(self._samples) if at > ms]
        return b'{"samples":[' + b",".join(found) + b"]}"
