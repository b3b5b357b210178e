"""The Nexmark queries in their standard form, and their events as Kafka topics.

The events are those of ``LOAD GENERATOR AUCTION`` with a fixed seed: of every fifty one is a
person, three are auctions, forty-six are bids. ``fill`` writes them as JSON into a topic for each
relation. Windows are ``date_bin`` (tumbling) and ``generate_series`` of beginnings (hopping):
there are no functions for windows of time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from confluent_kafka import Producer

from reclock.connectors.generator.auction import FIELDS, Auction

if TYPE_CHECKING:
    from reclock.testing.kafka import RealKafka

SEED: Final = 7
PARTITIONS: Final = 4
RELATIONS: Final = tuple(FIELDS)
_STEP: Final = 50_000

_WINDOW: Final = "date_bin(INTERVAL '10 seconds', date_time, TIMESTAMP '2000-01-01')"
_BIDS_OF_WINDOWS: Final = """
  SELECT b.auction, w.begins, count(*) AS num
  FROM (SELECT auction, date_bin(INTERVAL '2 seconds', date_time, TIMESTAMP '2000-01-01') AS latest
        FROM bid) b,
       generate_series(b.latest - INTERVAL '8 seconds', b.latest, INTERVAL '2 seconds')
         AS w (begins)
  GROUP BY b.auction, w.begins
"""
_RANKS: Final = {
    "": "",
    "rank1_": " FILTER (WHERE price < 10000)",
    "rank2_": " FILTER (WHERE price >= 10000 AND price < 1000000)",
    "rank3_": " FILTER (WHERE price >= 1000000)",
}
_COUNTS: Final = ", ".join(
    f"count({what}){where} AS {rank or 'total_'}{name}"
    for what, name in (
        ("*", "bids"), ("DISTINCT bidder", "bidders"), ("DISTINCT auction", "auctions"),
    )
    for rank, where in _RANKS.items()
)  # fmt: skip

QUERIES: Final = {
    "q3": """
SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
""",
    "q4": """
SELECT category, avg(final) AS final FROM (
  SELECT a.id, a.category, max(b.price) AS final FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category
) q GROUP BY category
""",
    "q5": f"""
WITH bids AS ({_BIDS_OF_WINDOWS})
SELECT b.auction, b.num FROM bids b
JOIN (SELECT begins, max(num) AS most FROM bids GROUP BY begins) m ON b.begins = m.begins
WHERE b.num >= m.most
""",
    "q7": f"""
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b
JOIN (SELECT {_WINDOW} AS begins, max(price) AS most FROM bid GROUP BY {_WINDOW}) m
  ON b.price = m.most
WHERE b.date_time >= m.begins AND b.date_time < m.begins + INTERVAL '10 seconds'
""",
    "q8": f"""
SELECT p.id, p.name, p.begins
FROM (SELECT id, name, {_WINDOW} AS begins FROM person GROUP BY id, name, {_WINDOW}) p
JOIN (SELECT seller, {_WINDOW} AS begins FROM auction GROUP BY seller, {_WINDOW}) a
  ON p.id = a.seller AND p.begins = a.begins
""",
    "q9": """
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category,
       extra, auction, bidder, price, bid_time, bid_extra
FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time, b.extra AS bid_extra,
         row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS rank
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
) q WHERE rank <= 1
""",
    "q15": f"""
SELECT to_char(date_time, 'YYYY-MM-DD') AS day, {_COUNTS}
FROM bid GROUP BY to_char(date_time, 'YYYY-MM-DD')
""",
    "q18": """
SELECT auction, bidder, price, channel, url, date_time, extra FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rank
  FROM bid
) q WHERE rank <= 1
""",
}


def events(rows: int) -> dict[str, int]:
    """Return how many rows each relation has among so many events."""
    return {name: Auction(SEED, name).before(rows) for name in RELATIONS}


def fill(kafka: RealKafka, rows: int) -> dict[str, str]:
    """Write so many events; return the topic of each relation."""
    settings = {
        "bootstrap.servers": kafka.address,
        "linger.ms": 50,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 1 << 20,
    }
    producer = Producer(settings)
    topics = {}
    for name, count in events(rows).items():
        topic = topics[name] = kafka.create_topic(PARTITIONS)
        for first in range(0, count, _STEP):
            for nth, line in enumerate(_lines(name, first, min(first + _STEP, count))):
                _produce(producer, topic, line, (first + nth) % PARTITIONS)
    producer.flush()
    return topics


def sources(names: tuple[str, ...], broker: str, topics: dict[str, str]) -> str:
    """Return the statements that read relations from their topics."""
    made = []
    for name in names:
        columns = ", ".join(f"{c.name} {c.type}" for c in Auction(SEED, name).columns)
        made.append(
            f"CREATE SOURCE {name} ({columns})\n"
            f"FROM KAFKA BROKER '{broker}' TOPIC '{topics[name]}' FORMAT JSON;"
        )
    return "\n".join(made)


def read_by(query: str) -> tuple[str, ...]:
    """Return the relations that a query reads."""
    words = QUERIES[query].replace("(", " ").replace(",", " ").split()
    follow = {after for before, after in pairwise(words) if before in {"FROM", "JOIN"}}
    return tuple(name for name in RELATIONS if name in follow or f"{name})" in follow)


def _lines(name: str, first: int, last: int) -> list[str]:
    made = Auction(SEED, name).rows(first, last)
    columns: dict[str, Any] = {}
    for column, array in zip(FIELDS[name], made.columns, strict=True):
        values = pl.Series(column, pl.from_arrow(array))
        if values.dtype == pl.Datetime:
            values = values.dt.strftime("%Y-%m-%dT%H:%M:%S%.6f")
        columns[column] = values
    return pl.DataFrame(columns).write_ndjson().splitlines()


def _produce(producer: Producer, topic: str, line: str, part: int) -> None:
    while True:
        try:
            producer.produce(topic, line.encode(), partition=part)
        except BufferError:
            producer.poll(0.1)
        else:
            return
