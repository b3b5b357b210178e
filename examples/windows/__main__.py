"""Windows that move with time: rows that come and go at their millisecond, with nothing written.

Run it with ``python -m examples.windows``. Time is ours here (``ManualClock``), so that an hour
takes a moment: events are written once, and the views change while the clock goes on.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import reclock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

PIPELINE = """
CREATE TABLE events (id BIGINT PRIMARY KEY, kind TEXT, at TIMESTAMP);
-- a sliding window: the last five minutes
CREATE MATERIALIZED VIEW recent AS
  SELECT kind, count(*) AS events FROM events
  WHERE mz_now() >= at AND mz_now() < at + INTERVAL '5 minutes' GROUP BY kind;
-- tumbling windows of a minute, each shown once its grace of thirty seconds is over, for an hour
CREATE MATERIALIZED VIEW minutes AS
  SELECT date_trunc('minute', at) AS minute, count(*) AS events FROM events
  WHERE mz_now() >= date_trunc('minute', at) + INTERVAL '90 seconds'
    AND mz_now() < date_trunc('minute', at) + INTERVAL '1 hour'
  GROUP BY date_trunc('minute', at);
"""


def run(state: Path) -> dict[str, list[tuple[object, ...]]]:
    """Let time pass, and return what the views were."""
    clock = reclock.ManualClock(int(NOON.timestamp() * 1_000))
    seen = {}
    with reclock.open(state, clock=clock, background=False) as db:
        db.execute(PIPELINE)
        rows = [
            (n, "click" if n % 3 else "buy", NOON.replace(tzinfo=None) + timedelta(seconds=20 * n))
            for n in range(6)
        ]
        db.insert("events", rows)
        for minutes in (0, 1, 2, 3, 6, 8, 65):
            clock.set(int((NOON + timedelta(minutes=minutes)).timestamp() * 1_000))
            db.tick()
            recent = db.execute("SELECT kind, events FROM recent ORDER BY kind").rows
            shown = db.execute("SELECT minute, events FROM minutes ORDER BY minute").rows
            seen[f"12:00 + {minutes} min"] = [*recent, *shown]
            windows = [(f"{minute:%H:%M}", events) for minute, events in shown]
            print(f"12:00 + {minutes:2} min: recent {recent}, minutes {windows}")
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        run(Path(home) / "state")
