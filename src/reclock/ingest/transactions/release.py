"""The transactions that the sources of one consistency topic release in a tick, all alike.

Sources whose transactions get times of the system (``reclocked_intake``) publish them in the same
ticks, so that at every time all of them have the same transactions, whole across sources::

    strict      all before a number: as far as the last of them is
    complete    those that are complete in every one of them, and overtake no key in any

A source that is new *lags*: others have released what it has not. It releases what they have, as it
gets it, and the others do not wait for it; in the tick in which it has all, it is one of them. A
source that has failed is not one any more.

Cost: what waits. Keeps P3, P7. Tests: tests/ingest/test_release.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.ingest.transactions.transactions import Transactions

Numbers = frozenset[int]


class Member(NamedTuple):
    """One source of a topic: its transactions, and about how many rows a tick takes."""

    transactions: Transactions
    most: int


class _Released:
    """The numbers of the transactions that any of these sources has released."""

    def __init__(self, others: Sequence[Transactions]) -> None:
        self._ledgers = [other.ledger for other in others]

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        return any(ledger.is_released(number) for ledger in self._ledgers)

    def goes_past(self, number: int) -> bool:
        """Return whether a greater number was released."""
        return any(ledger.has_released_after(number) for ledger in self._ledgers)


def complete_together(members: Sequence[Member]) -> list[Numbers]:
    """Return the numbers of the transactions that each releases now, out of turn."""
    found: list[Numbers] = []
    agreeing: list[int] = []
    for at, member in enumerate(members):
        ledger = member.transactions.ledger
        others = [other.transactions for other in members if other is not member]
        released = _Released(others)
        wanted = [e.number or 0 for e in ledger.numbered() if e.number in released]
        follows = _taken(_free(member, frozenset(wanted)), [member], [frozenset()])
        found.append(follows)
        if follows.issuperset(wanted) and not released.goes_past(ledger.last):
            agreeing.append(at)
    chosen = _agreed([members[at] for at in agreeing], [found[at] for at in agreeing])
    return [some | chosen if at in agreeing else some for at, some in enumerate(found)]


def _free(member: Member, among: Numbers) -> Numbers:
    return frozenset(entry.number or 0 for entry in member.transactions.free(among))


def _agreed(members: Sequence[Member], before: Sequence[Numbers]) -> Numbers:
    """Return what all can release that have released, then, what was ``before``."""
    if not members:
        return frozenset()
    first = members[0].transactions.ledger.numbered()
    complete = frozenset(entry.number or 0 for entry in first if entry.is_complete)
    return _taken(_closed(complete, members, before), members, before)


def _taken(numbers: Numbers, members: Sequence[Member], before: Sequence[Numbers]) -> Numbers:
    """Return as many of them as a tick takes; all, if no few of them can go alone."""
    return _closed(_some(numbers, members), members, before) or numbers


def _closed(numbers: Numbers, members: Sequence[Member], before: Sequence[Numbers]) -> Numbers:
    """Return those that overtake no key in any source if nothing else is released."""
    while numbers:
        left = numbers
        for member, some in zip(members, before, strict=True):
            left &= _free(member, left | some)
        if left == numbers:
            break
        numbers = left
    return numbers


def _some(numbers: Numbers, members: Sequence[Member]) -> Numbers:
    """Return the first of them, as many as a tick takes, but one at the least."""
    left = [member.most for member in members]
    found: list[int] = []
    for number in sorted(numbers):
        for at, member in enumerate(members):
            left[at] -= member.transactions.ledger.rows_of(number)
        if found and min(left) < 0:
            break
        found.append(number)
    return frozenset(found)
