"""Dashboards of an auction house, kept up to date: the Nexmark benchmark's relations.

Run it with ``python -m examples.nexmark``: people, auctions and bids come from generators, and four
views are kept: the best bid of each auction, what each category brings, the busiest auctions, and
who sells most. They agree: what they have in common is asked in one query, at one timestamp.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import reclock

PIPELINE = """
ALTER SYSTEM SET timestamp_interval = '200ms';
CREATE SOURCE person FROM LOAD GENERATOR AUCTION (SEED 7, EVENTS PER TICK 500, RELATION 'person');
CREATE SOURCE auction FROM LOAD GENERATOR AUCTION (SEED 7, EVENTS PER TICK 500, RELATION 'auction');
CREATE SOURCE bid FROM LOAD GENERATOR AUCTION (SEED 7, EVENTS PER TICK 500, RELATION 'bid');

CREATE MATERIALIZED VIEW best_bid AS
  SELECT a.id, a.category, a.seller, max(b.price) AS price, count(*) AS bids
  FROM auction a JOIN bid b ON b.auction = a.id
  GROUP BY a.id, a.category, a.seller;
CREATE MATERIALIZED VIEW by_category AS
  SELECT category, count(*) AS auctions, sum(price) AS worth, sum(bids) AS bids
  FROM best_bid GROUP BY category;
CREATE MATERIALIZED VIEW busiest AS
  SELECT id, bids, price FROM best_bid ORDER BY bids DESC, id LIMIT 5;
CREATE MATERIALIZED VIEW sellers AS
  SELECT p.name, p.city, count(*) AS auctions, sum(b.price) AS worth
  FROM best_bid b JOIN person p ON p.id = b.seller
  GROUP BY p.name, p.city;
"""

AGREE = """
SELECT (SELECT sum(worth) FROM by_category), (SELECT sum(price) FROM best_bid),
       (SELECT sum(bids) FROM by_category), (SELECT sum(bids) FROM best_bid)
"""


def run(state: Path, seconds: float = 5.0) -> int:
    """Show the dashboards a few times; return how many bids they have seen."""
    with reclock.open(state) as db:
        db.execute(PIPELINE)
        end = time.monotonic() + seconds
        bids = 0
        while time.monotonic() < end or not bids:
            result = db.execute(AGREE)
            by_category, by_auction, counted, bids = result.rows[0]
            assert (by_category, counted) == (by_auction, bids)
            print(f"\nat {result.timestamp}: {bids or 0} bids, worth {by_auction or 0}")
            for title, query in (
                ("busiest auctions", "SELECT id, bids, price FROM busiest ORDER BY bids DESC, id"),
                ("categories", "SELECT category, auctions, worth FROM by_category ORDER BY 1"),
            ):
                print(f"  {title}: {db.execute(query).rows}")
            time.sleep(1)
        return int(bids)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        run(Path(home) / "state")
