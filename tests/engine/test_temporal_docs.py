"""The patterns of docs/temporal-filters.md run as they stand, and give what they say."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

import reclock

pytestmark = pytest.mark.spark

DOCUMENT = Path(__file__).parents[2] / "docs" / "temporal-filters.md"
MINUTE = 60_000


def test_the_patterns_run(tmp_path):
    document = DOCUMENT.read_text(encoding="utf-8")
    text = document.split("## Patterns")[1].split("## Long windows")[0]
    text += document.split("## Views that are refreshed")[1]
    clock = reclock.ManualClock(1_000)
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET logical_compaction_window = '10 days'")
        for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL):
            db.execute(block)
        for at, user in (("00:00:10", 1), ("00:00:50", 1), ("00:01:30", 2), ("00:40:00", 1)):
            db.execute(f"INSERT INTO events VALUES ({user}, 'x', '1970-01-01 {at}')")
        db.execute("INSERT INTO cache VALUES ('a', 'b', 1000, 500), ('c', 'd', 1000, 900000)")
        db.execute("INSERT INTO posts VALUES ('p', '1970-01-01 00:02:00', NULL)")
        db.execute(
            "INSERT INTO readings VALUES (1, '1970-01-01 00:00:10', '1970-01-01 00:00:20'),"
            " (2, '1970-01-01 00:00:10', '1970-01-01 00:05:00')"
        )
        clock.set(2 * 1_440 * MINUTE)
        db.tick()

        def rows(name: str, time: int, what: str = "*") -> list:
            return sorted(db.execute(f"SELECT {what} FROM {name} AS OF {time}").rows)

        assert rows("last_5_minutes", 5 * MINUTE) == [(1, 3), (2, 1)]
        assert rows("last_5_minutes", 5 * MINUTE + 10_000) == [(1, 2), (2, 1)]
        assert rows("last_5_minutes", 7 * MINUTE) == [(1, 1)]
        assert rows("daily", 60 * MINUTE) == []  # created before there were events
        assert rows("daily", 2 * 1_440 * MINUTE) == [(1, 3), (2, 1)]
        assert rows("live", 1_499, "key") == [("a",), ("c",)]
        assert rows("live", 1_500, "key") == [("c",)]
        assert rows("published", 2 * MINUTE - 1) == []
        assert rows("published", 2 * MINUTE) == [("p",)]
        assert rows("per_minute", MINUTE - 1) == []
        assert rows("per_minute", 2 * MINUTE, "n") == [(1,), (2,)]
        assert rows("final", 90_000 - 1) == []
        assert rows("final", 90_000, "total") == [(1,)]
        begins = datetime.fromisoformat("1970-01-01T00:00")
        assert (begins, 3) in rows("hopping", 10 * MINUTE - 1)
        assert (begins, 3) not in rows("hopping", 10 * MINUTE)
        assert rows("sessions", 20 * MINUTE, "user_id") == [(1,), (2,)]
        assert [r[0] for r in rows("sessions", 45 * MINUTE)] == [1]
        assert rows("sessions", 45 * MINUTE, "began") == [
            (datetime.fromisoformat("1970-01-01T00:40"),)
        ]
