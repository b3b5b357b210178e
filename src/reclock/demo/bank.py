"""The bank of the demonstration: its transfers, its pipeline, and what must come out.

Transfer n is a pure function of the seed and n (``LOAD GENERATOR BANK``'s), so what the output
must be is computed here, without reclock's engine: that is what the verdict compares with.

Tests: tests/demo/test_bank.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from reclock.connectors.generator.bank import Bank

SEED: Final = 7
ACCOUNTS: Final = 50
PARTITIONS: Final = 4
"""Of the transfers, and of the ledger."""
TRANSFERS: Final = "transfers"
LEDGER: Final = "ledger"
BALANCE: Final = "balance"
TOTAL: Final = "total"

_VIEWS: Final = """
CREATE MATERIALIZED VIEW credits AS
  SELECT to_account AS account, sum(amount) AS amount FROM transfers GROUP BY to_account;
CREATE MATERIALIZED VIEW debits AS
  SELECT from_account AS account, sum(amount) AS amount FROM transfers GROUP BY from_account;
CREATE MATERIALIZED VIEW balance AS
  SELECT account, sum(amount) AS balance
  FROM (SELECT account, amount FROM credits
        UNION ALL
        SELECT account, -amount FROM debits) AS moves
  GROUP BY account;
CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total FROM balance;
"""

_KAFKA: Final = """
ALTER SYSTEM SET timestamp_interval = '500ms';
CREATE SOURCE transfers (id BIGINT, from_account BIGINT, to_account BIGINT, amount BIGINT)
  FROM KAFKA BROKER '{broker}' TOPIC 'transfers' FORMAT JSON;
{views}
CREATE SINK ledger FROM transfers INTO KAFKA BROKER '{broker}' TOPIC 'ledger'
  FORMAT JSON ENVELOPE DEBEZIUM WITH (reuse_topic = true, partitions = {partitions});
CREATE SINK balances FROM balance INTO KAFKA BROKER '{broker}' TOPIC 'balance'
  KEY (account) FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true, partitions = 1);
CREATE SINK totals FROM total INTO KAFKA BROKER '{broker}' TOPIC 'total'
  FORMAT JSON ENVELOPE DEBEZIUM WITH (reuse_topic = true, partitions = 1);
"""

_EMBEDDED: Final = """
ALTER SYSTEM SET timestamp_interval = '500ms';
ALTER SYSTEM SET logical_compaction_window = '1 h';
CREATE SOURCE transfers
  FROM LOAD GENERATOR BANK (SEED {seed}, ACCOUNTS {accounts}, EVENTS PER TICK {events});
{views}
"""


def kafka_pipeline(broker: str) -> str:
    """Return the pipeline between topics of a broker."""
    return _KAFKA.format(broker=broker, views=_VIEWS, partitions=PARTITIONS)


def embedded_pipeline(events: int) -> str:
    """Return the pipeline that makes its own transfers, so many with each tick."""
    return _EMBEDDED.format(seed=SEED, accounts=ACCOUNTS, events=events, views=_VIEWS)


class Transfer(NamedTuple):
    """Money that goes from one account to another."""

    id: int
    from_account: int
    to_account: int
    amount: int

    def json(self) -> bytes:
        """Return the message of it."""
        return json.dumps(self._asdict()).encode()


def transfers(first: int, last: int) -> list[Transfer]:
    """Return the transfers with the numbers ``first`` … ``last - 1``.

    >>> transfers(0, 1)
    [Transfer(id=1, from_account=32, to_account=26, amount=778)]
    """
    columns = Bank(SEED, ACCOUNTS).rows(first, last).columns[:4]
    return [Transfer(*row) for row in zip(*(c.to_pylist() for c in columns), strict=True)]


@dataclass(frozen=True)
class Expected:
    """What the first ``count`` transfers come to."""

    count: int
    balances: dict[int, int]

    @classmethod
    def of(cls, count: int) -> Expected:
        """Compute it, with numpy alone.

        >>> sum(Expected.of(1_000).balances.values())
        0
        """
        _, giver, taker, amount = (
            np.asarray(column) for column in Bank(SEED, ACCOUNTS).rows(0, count).columns[:4]
        )
        gained = np.bincount(taker, amount, ACCOUNTS + 1) - np.bincount(giver, amount, ACCOUNTS + 1)
        seen = sorted({*giver.tolist(), *taker.tolist()})
        return cls(count, {account: int(gained[account]) for account in seen})
