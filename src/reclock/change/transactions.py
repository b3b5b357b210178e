"""TEMP and OUTPUT of a source whose rows come in transactions: the definition, in plain Python.

Inputs are prefixes of two logs. One *mentions* transactions, by the status BEGIN or END; an END
counts the rows that the transaction has. The other has *rows*, each of which names its transaction,
or none. From all that was read so far::

    number(x)    the rank, from 1 on, of the first mention of x
    complete(x)  it has ended, and as many rows of it are there as were counted

    strict       released = the transactions up to the first that is not complete
    complete     released = those that are complete, and have no row whose key a row has of a
                 transaction with a smaller number that is not released

    OUTPUT       the rows of what is released; and those that name no transaction
    TEMP         the other rows, and the mentions of what is not released

Repetitions say nothing: a row at the same place of a transaction, and the mention of one that has
not ended, or is among the last ``REMEMBERED`` that were mentioned. What is released stays released
when more is read, and OUTPUT and TEMP hold everything that was read, once. Of two rows of one key
that are released the later one is that of the greater number, then that of the greater place.

This is what ``ingest.transactions.transactions`` computes step by step; no part of the system
runs it. Tests: tests/ingest/test_transactions.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REMEMBERED: Final = 1_000
"""Of how many transactions, those last mentioned, repetitions are known."""


class Mention(NamedTuple):
    """Transaction ``id`` begins, or ends with so many ``rows``; None: with none that are ours."""

    id: str
    ends: bool
    rows: int | None = None


class Row(NamedTuple):
    """The record at ``offset`` of ``partition``; ``order`` is its place in its transaction."""

    partition: int
    offset: int
    transaction: str | None
    order: int | None
    key: Any
    data: Any = None


class Transaction(NamedTuple):
    """A transaction that was mentioned: its number, and its rows if it has ended."""

    number: int
    id: str
    ends: bool
    rows: int | None


class Summary(NamedTuple):
    """All that was read: rows that are released, by number (0: of none), and what is not."""

    output: frozenset[tuple[int, Row]]
    temp: frozenset[Row | Transaction]


def counted(mentions: Sequence[Mention], remembered: int = REMEMBERED) -> list[Transaction]:
    """Return the transactions that are mentioned, in the order of their numbers.

    >>> begin, end = Mention("a", False), Mention("a", True, 2)
    >>> counted([begin, Mention("b", True, 1), end, begin])
    [Transaction(number=1, id='a', ends=True, rows=2), \
Transaction(number=2, id='b', ends=True, rows=1)]
    """
    found: list[Transaction] = []
    for mention in mentions:
        last = next((t for t in reversed(found) if t.id == mention.id), None)
        if last is not None and not last.ends:
            if mention.ends:
                found[last.number - 1] = last._replace(ends=True, rows=mention.rows)
        elif last is None or last.number <= len(found) - remembered:
            found.append(Transaction(len(found) + 1, mention.id, mention.ends, mention.rows))
    return found


def summary(mentions: Sequence[Mention], rows: Sequence[Row], *, strict: bool) -> Summary:
    """Return OUTPUT and TEMP of all that was read."""
    seen: set[tuple[str | None, int | None]] = set()
    distinct = []
    for row in rows:
        place = row.transaction, row.order
        if row.order is None or place not in seen:
            distinct.append(row)
        seen.add(place)
    known = counted(mentions)
    arrived = [sum(row.transaction == t.id for row in distinct) for t in known]
    complete = {t.id for t, n in zip(known, arrived, strict=True) if t.ends and n == (t.rows or 0)}
    released = set[str]()
    if strict:
        for t in known:
            if t.id not in complete:
                break
            released.add(t.id)
    else:
        released = complete
        ranks = {t.id: t.number for t in known}
        while blocked := {name for name in released if _follows(name, distinct, released, ranks)}:
            released -= blocked
    number = {t.id: t.number for t in known if t.id in released}
    output = frozenset(
        (0 if row.transaction is None else number[row.transaction], row)
        for row in distinct
        if row.transaction is None or row.transaction in released
    )
    waiting = (row for row in distinct if row.transaction not in {None, *released})
    return Summary(output, frozenset([*waiting, *(t for t in known if t.id not in released)]))


def _follows(
    name: str, rows: Sequence[Row], released: set[str], numbers: Mapping[str, int]
) -> bool:
    """Return whether a transaction has the key of one before it that is not released."""
    return any(
        row.transaction == name
        and other.transaction not in {None, *released}
        and other.key == row.key
        and numbers.get(other.transaction or "", len(numbers) + 1) < numbers[name]
        for row in rows
        for other in rows
    )
