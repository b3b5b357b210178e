"""The verdict: the output, read again and compared with what it must be.

Tests: tests/demo/test_observer.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.demo.screen import counted

if TYPE_CHECKING:
    from reclock.demo.bank import Expected
    from reclock.demo.observer import Seen


@dataclass(frozen=True)
class Verdict:
    """What is wrong with the output; nothing, if it is right."""

    kills: int
    transfers: int
    messages: int
    duplicates: int
    lost: int
    wrong: int
    """Accounts whose last balance is not theirs."""
    timestamps: int
    unbalanced: int
    totals: list[int]

    @classmethod
    def of(cls, expected: Expected, seen: Seen, kills: int) -> Verdict:
        """Compare."""
        accounts = expected.balances.keys() | seen.balances.keys()
        wrong = sum(seen.balances.get(a, 0) != expected.balances.get(a, 0) for a in accounts)
        lost = expected.count - len(seen.ids.keys() & range(1, expected.count + 1))
        return cls(
            kills, expected.count, seen.messages, seen.duplicates, lost, wrong,
            seen.timestamps, len(seen.unbalanced), seen.totals,
        )  # fmt: skip

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        counts = (self.duplicates, self.lost, self.wrong, self.unbalanced)
        return not any(counts) and self.totals == [0]

    def __str__(self) -> str:
        once = "exactly once" if self.right else "NOT exactly once"
        return (
            f"{once}: {self.transfers:,} transfers, {self.messages:,} messages in the output "
            f"topics after {counted(self.kills, 'kill')}\n"
            f"  duplicates {self.duplicates}, lost {self.lost}, wrong balances {self.wrong}\n"
            f"  total of all balances: 0 at {self.timestamps - self.unbalanced} of "
            f"{self.timestamps} timestamps; the view of it was ever {self.totals}"
        )
