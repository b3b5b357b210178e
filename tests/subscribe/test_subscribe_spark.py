"""SUBSCRIBE with the real engine: the same updates as SELECT AS OF says."""

from __future__ import annotations

from collections import Counter

import pytest

import reclock
from reclock import ManualClock

pytestmark = pytest.mark.spark

JOINED = (
    "SELECT c.region, count(*) AS n, sum(o.amount) AS s FROM orders o"
    " LEFT JOIN customers c ON o.customer = c.id GROUP BY c.region"
)


def test_queries_are_followed_exactly_now_and_from_the_past(tmp_path):
    clock = ManualClock(1_000)
    with reclock.open(tmp_path / "state", clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
        db.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT, amount INT)")
        db.execute("CREATE TABLE customers (id INT PRIMARY KEY, region TEXT)")
        start = db.execute("INSERT INTO customers VALUES (1, 'n'), (2, 's')").timestamp
        db.execute("INSERT INTO orders VALUES (1, 1, 5), (2, 3, 7)")
        sub = db.subscribe(f"SUBSCRIBE ({JOINED}) WITH (PROGRESS)")
        got = list(sub)
        db.execute("INSERT INTO orders VALUES (3, 2, 4)")
        db.execute("UPDATE orders SET amount = amount * 2 WHERE id = 1")
        clock.advance(5_000)
        db.execute("DELETE FROM customers WHERE id = 1")
        got += list(sub)
        past = db.subscribe(
            f"SUBSCRIBE ({JOINED.replace('count(*)', 'count(o.id)')}) AS OF {start}"
        )
        older = list(past)
        for updates in (got, older):
            total = Counter()
            times = sorted({u.timestamp for u in updates})
            assert len(times) >= 4
            for time in times:
                for u in updates:
                    if u.timestamp == time and not u.progressed:
                        total[u.row] += u.diff
                assert +total == Counter(db.execute(f"{JOINED} AS OF {time}").rows)
        sub.close()
        past.close()
        assert db._core.world.transients == {}
        assert db.check() == []
