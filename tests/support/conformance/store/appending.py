"""Cases about compare-and-append: what is written, when nothing is, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.store.kit import (
    CLOSED,
    append,
    at,
    fresh,
    refused,
    then_reopened,
    up,
)
from reclock.durable.store import Append, UpperMismatch
from reclock.errors import InvalidValue
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from conformance.store.kit import Case, Reopen


def appends_are_durable(reopen: Reopen) -> None:
    """Check that what was appended is there, in order, now and after reopening."""
    store = reopen()
    (c,) = fresh(store, "c")
    assert append(store, c, [up("b", 1), up("a", 1, 3)], at(0), at(2)) is None
    assert append(store, c, [up("a", 4, -2)], at(2), at(7)) is None
    for opened in then_reopened(store, reopen):
        snapshot = opened.snapshot(c)
        assert snapshot.state == opened.state(c)
        assert (snapshot.since, snapshot.upper) == (at(0), at(7))
        assert snapshot.updates == (up("a", 1, 3), up("b", 1), up("a", 4, -2))
        assert snapshot.accumulate(Timestamp(0)) == {}
        assert snapshot.accumulate(Timestamp(3)) == {"a": 3, "b": 1}
        assert snapshot.accumulate(Timestamp(4)) == {"a": 1, "b": 1}


def an_unexpected_upper_writes_nothing(reopen: Reopen) -> None:
    """Check that, behind or ahead, the loser is told the upper and nothing changes."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [up("a", 1)], at(0), at(5))
    before = store.snapshot(c)
    assert append(store, c, [up("a", 1)], at(0), at(5)) == UpperMismatch(c, at(5))
    assert append(store, c, [up("b", 7)], at(6), at(8)) == UpperMismatch(c, at(5))
    assert append(store, c, [], at(4), CLOSED) == UpperMismatch(c, at(5))
    assert append(store, c, [], CLOSED, CLOSED) == UpperMismatch(c, at(5))
    assert store.snapshot(c) == before
    assert reopen().snapshot(c) == before


def several_collections_are_one_transaction(reopen: Reopen) -> None:
    """Check that one unexpected upper stops all, and the answer names it."""
    store = reopen()
    a, b, c = fresh(store, "a", "b", "c")
    append(store, b, [], at(0), at(3))
    wrong = [Append(x, (up("x", 1),), at(0), at(5)) for x in (c, b, a)]
    assert store.append(wrong) == UpperMismatch(b, at(3))
    assert [store.state(x).upper for x in (a, b, c)] == [at(0), at(3), at(0)]
    assert not any(store.snapshot(x).updates for x in (a, b, c))
    right = [Append(x, (up("x", 4),), store.state(x).upper, at(5)) for x in (c, b, a)]
    assert store.append(right) is None
    for opened in then_reopened(store, reopen):
        for x in (a, b, c):
            assert opened.state(x).upper == at(5)
            assert opened.snapshot(x).updates == (up("x", 4),)


def impossible_appends_are_refused(reopen: Reopen) -> None:
    """Check intervals, uppers that go back, a collection named twice, impossible data."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [], at(0), at(5))
    for outside in (4, 8, 9):
        refused(InvalidValue, append, store, c, [up("a", outside)], at(5), at(8))
    refused(InvalidValue, append, store, c, [], at(5), at(4))
    refused(InvalidValue, append, store, c, [], CLOSED, at(9))
    refused(InvalidValue, append, store, c, [up("a", 9)], CLOSED, CLOSED)
    twice = [Append(c, (), at(5), at(6)), Append(c, (), at(6), at(7))]
    refused(InvalidValue, store.append, twice)
    for text in ("nul \0", "half \ud800"):
        refused(InvalidValue, up, text, 6)
    refused(InvalidValue, up, "a", 6, INT64_MAX + 1)
    many = up("a", 6, INT64_MAX)
    refused(InvalidValue, append, store, c, [many, many], at(5), at(8))
    assert store.state(c).upper == at(5)
    assert store.snapshot(c).updates == ()


def time_passes_without_updates(reopen: Reopen) -> None:
    """Check that an empty append advances, and an empty interval only checks."""
    store = reopen()
    (c,) = fresh(store, "c")
    assert append(store, c, [], at(0), at(9)) is None
    assert append(store, c, [], at(9), at(9)) is None
    assert append(store, c, [], at(8), at(8)) == UpperMismatch(c, at(9))
    assert store.append([]) is None
    assert reopen().state(c).upper == at(9)


def a_closed_collection_stays_closed_and_readable(reopen: Reopen) -> None:
    """Check closing with a last append: nothing can follow."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [up("a", INT64_MAX)], at(0), CLOSED)
    for opened in then_reopened(store, reopen):
        assert opened.state(c).upper == CLOSED
        assert opened.snapshot(c).updates == (up("a", INT64_MAX),)
        mismatch = append(opened, c, [], at(0), at(5))
        assert mismatch == UpperMismatch(c, CLOSED)
        assert append(opened, c, [], CLOSED, CLOSED) is None


def data_is_kept_letter_by_letter(reopen: Reopen) -> None:
    """Check that any text, of any length, with any count, comes back as it was."""
    store = reopen()
    (c,) = fresh(store, "c")
    texts = ["", " ", "'\"\\%s%(x)s:y?", "Ω\u2028\U0001f600\x7f\x01", "é", "e\u0301", "a" * 100_000]
    updates = [up(text, n, INT64_MAX - n) for n, text in enumerate(texts)]
    append(store, c, updates, at(0), at(100))
    assert store.snapshot(c).updates == tuple(updates)
    assert reopen().snapshot(c).updates == tuple(updates)


def equal_updates_are_summed(reopen: Reopen) -> None:
    """Check sums within one append: those that cancel were never there."""
    store = reopen()
    (c,) = fresh(store, "c")
    same = [up("a", 1), up("b", 1), up("a", 1), up("b", 1, -1), up("z", 1, 0), up("a", 2)]
    append(store, c, same, at(0), at(3))
    assert store.snapshot(c).updates == (up("a", 1, 2), up("a", 2))


def a_follower_reads_only_what_is_new(reopen: Reopen) -> None:
    """Check that ``updates`` gives times beyond lower, and the frontiers."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [up("a", t) for t in range(6)], at(0), at(6))
    assert store.updates(c, at(0)) == store.snapshot(c)
    assert store.updates(c, at(4)).updates == (up("a", 4), up("a", 5))
    assert store.updates(c, at(4)).upper == at(6)
    assert store.updates(c, at(6)).updates == ()
    assert store.updates(c, CLOSED).updates == ()


CASES: Final[tuple[Case, ...]] = (
    appends_are_durable,
    an_unexpected_upper_writes_nothing,
    several_collections_are_one_transaction,
    impossible_appends_are_refused,
    time_passes_without_updates,
    a_closed_collection_stays_closed_and_readable,
    data_is_kept_letter_by_letter,
    equal_updates_are_summed,
    a_follower_reads_only_what_is_new,
)
