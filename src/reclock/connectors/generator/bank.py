"""``LOAD GENERATOR BANK``: transfers between accounts.

Event n is one transfer, from one of the accounts 1 … ``accounts`` to another one. Every
view that adds up what accounts have gained and lost must give 0 over all of them at every
timestamp: the plainest test of consistency there is. Tests:
tests/connectors/generator/test_bank.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from reclock.connectors.generator.draw import Draws
from reclock.connectors.generator.model import Column, Rows, inserted, instants
from reclock.sql.types import BIGINT, TIMESTAMP

ACCOUNTS: Final = 100
LARGEST_AMOUNT: Final = 1_000
BASE: Final = 1_704_067_200_000_000  # 2024-01-01 00:00:00, in microseconds
STEP: Final = 1_000  # a transfer each millisecond


@dataclass(frozen=True, slots=True)
class Bank:
    """The transfers of a seed among so many accounts."""

    seed: int
    accounts: int = ACCOUNTS

    @property
    def columns(self) -> tuple[Column, ...]:
        """What a transfer consists of."""
        numbers = ("id", "from_account", "to_account", "amount")
        return (*(Column(name, BIGINT) for name in numbers), Column("at", TIMESTAMP))

    def before(self, offset: int) -> int:
        """Return ``offset``: every event is a transfer."""
        return offset

    def rows(self, first: int, last: int) -> Rows:
        """Return the transfers; those who give are never those who take."""
        events = np.arange(first, last, dtype=np.int64)
        draws = Draws(self.seed)
        giver = draws.below("bank/from", events, self.accounts)
        distance = 1 + draws.below("bank/to", events, self.accounts - 1)
        taker = (giver + distance) % self.accounts
        amount = 1 + draws.below("bank/amount", events, LARGEST_AMOUNT)
        numbers = (events + 1, giver + 1, taker + 1, amount)
        columns = (*map(pa.array, numbers), instants(BASE, STEP, events))
        return Rows(events, columns, inserted(len(events)))
