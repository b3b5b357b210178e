"""Cases about compaction: since moves, contents at readable times never change.

The property is checked against ``_Model``, which keeps every update for ever and sums when
asked.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.store.kit import (
    CLOSED,
    append,
    at,
    fresh,
    refused,
    then_reopened,
    up,
)
from reclock.durable.store import Append
from reclock.errors import InvalidCompaction, Unreadable
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from conformance.store.kit import Case, Reopen
    from reclock.durable.store import Store, StoredUpdate
    from reclock.ids import CollectionId


def compaction_sums_what_it_folds(reopen: Reopen) -> None:
    """Check that times up to since become since, and what cancels disappears."""
    store = reopen()
    (c,) = fresh(store, "c")
    flip = [up("flip", t, (-1) ** t) for t in range(10)]
    append(store, c, [*flip, up("kept", 0), up("kept", 3, 2), up("late", 9)], at(0), at(10))
    store.compact(c, at(4))
    late = [update for update in flip if update.time > 4]
    folded = (up("flip", 4), up("kept", 4, 3), *sorted([*late, up("late", 9)], key=_by_time))
    for opened in then_reopened(store, reopen):
        assert opened.snapshot(c).since == at(4)
        assert opened.snapshot(c).updates == folded
    store = reopen()
    store.compact(c, at(4))
    assert store.snapshot(c).updates == folded
    store.compact(c, at(9))
    assert store.snapshot(c).updates == (up("kept", 9, 3), up("late", 9))


def _by_time(update: StoredUpdate) -> tuple[int, str]:
    return update.time, update.data


def an_append_may_compact(reopen: Reopen) -> None:
    """Check that what it cancels is gone with it, and that a bad since refuses all of it."""
    store = reopen()
    c, d = fresh(store, "c", "d")
    first = [up("a", 1), up("a", 2), up("b", 2), up("moved", 0), up("moved", 1, -1)]
    append(store, c, first, at(0), at(3))
    cancel = Append(c, (up("b", 3, -1), up("c", 4), up("d", 6)), at(3), at(9), since=at(4))
    assert store.append([cancel, Append(d, (), at(0), at(1))]) is None
    for opened in then_reopened(store, reopen):
        assert opened.snapshot(c).since == at(4)
        assert opened.snapshot(c).updates == (up("a", 4, 2), up("c", 4), up("d", 6))
    store = reopen()
    for bad in (at(3), at(12)):
        change = Append(c, (up("e", 9),), at(9), at(12), since=bad)
        refused(InvalidCompaction, store.append, [Append(d, (), at(1), at(2)), change])
    assert (store.state(c).upper, store.state(d).upper) == (at(9), at(1))
    assert store.append([Append(c, (), at(9), at(12), since=at(11))]) is None
    assert store.state(c).since == at(4), "nothing to fold, so nothing is moved"


def since_only_advances_and_stays_before_upper(reopen: Reopen) -> None:
    """Check that a readable time remains, unless the collection is closed."""
    store = reopen()
    (c,) = fresh(store, "c")
    refused(InvalidCompaction, store.compact, c, at(1))
    store.compact(c, at(0))
    append(store, c, [up("a", 1)], at(0), at(6))
    store.compact(c, at(5))
    for bad in (at(6), at(7), CLOSED, at(4)):
        refused(InvalidCompaction, store.compact, c, bad)
    assert store.state(c).since == at(5)
    append(store, c, [], at(6), CLOSED)
    store.compact(c, at(8))
    assert store.snapshot(c).updates == (up("a", 8),)
    store.compact(c, CLOSED)
    store.compact(c, CLOSED)
    store = reopen()
    assert store.snapshot(c).updates == ()
    refused(InvalidCompaction, store.compact, c, at(9))


def contents_are_readable_in_the_definite_interval_only(reopen: Reopen) -> None:
    """Check that a time before since, or not complete yet, is refused and not guessed."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [up("a", 2), up("a", 7)], at(0), at(9))
    store.compact(c, at(5))
    snapshot = store.snapshot(c)
    assert [snapshot.accumulate(Timestamp(t)) for t in (5, 8)] == [{"a": 1}, {"a": 2}]
    for outside in (0, 4, 9, 10):
        error = refused(Unreadable, snapshot.accumulate, Timestamp(outside))
        assert error.detail == "it is definite in [{5}, {9})"
    append(store, c, [], at(9), CLOSED)
    assert store.snapshot(c).accumulate(Timestamp(10**12)) == {"a": 2}


def a_follower_behind_since_is_told(reopen: Reopen) -> None:
    """Check that who may have seen a folded update must take a snapshot."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [up("a", 2), up("b", 4), up("c", 5)], at(0), at(6))
    store.compact(c, at(4))
    for lower in (0, 3, 4):
        refused(Unreadable, store.updates, c, at(lower))
    assert store.updates(c, at(5)).updates == (up("c", 5),)
    append(store, c, [], at(6), CLOSED)
    store.compact(c, CLOSED)
    assert store.updates(c, CLOSED).updates == ()
    refused(Unreadable, store.updates, c, at(5))


class _Model:
    """Every update for ever, and the frontiers."""

    def __init__(self) -> None:
        self.updates: list[StoredUpdate] = []
        self.since = 0
        self.upper = 0

    def accumulate(self, time: int) -> Counter[str]:
        sums: Counter[str] = Counter()
        for update in self.updates:
            if update.time <= time:
                sums[update.data] += update.diff
        return Counter({data: n for data, n in sums.items() if n})


_changes = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([-2, -1, 1, 2])),
    max_size=6,
)
_Step = tuple[str, int, list[tuple[str, int, int]]]
"""A verb, how far it goes, and what it adds."""

_steps: st.SearchStrategy[_Step] = st.one_of(
    st.tuples(st.sampled_from(["append", "append and compact"]), st.integers(0, 4), _changes),
    st.tuples(st.just("compact"), st.integers(0, 6), st.just([])),
)


def compaction_changes_no_readable_contents(reopen: Reopen) -> None:
    """Check ∀ t ∈ [since, upper): A(t) is what was appended, however it was folded."""
    store = reopen()
    models: dict[CollectionId, _Model] = {}

    @settings(max_examples=40, deadline=None)
    @given(st.lists(_steps, max_size=12))
    def check(steps: list[_Step]) -> None:
        (c,) = fresh(store, "c")
        model = models[c] = _Model()
        for verb, amount, changes in steps:
            if verb != "compact":
                new = model.upper + amount
                moved = [(data, model.upper + offset, diff) for data, offset, diff in changes]
                updates = [up(data, time, diff) for data, time, diff in moved if time < new]
                since = max(model.since, new - 1 - len(changes) % 3)
                compacts = verb == "append and compact" and since < new
                given_since = at(since) if compacts else None
                step = Append(c, tuple(updates), at(model.upper), at(new), given_since)
                assert store.append([step]) is None
                model.updates += updates
                model.upper = new
                model.since = since if compacts and updates else model.since
            else:
                model.since = max(model.since, min(model.since + amount, model.upper - 1))
                store.compact(c, at(model.since))
            _check_against(model, store, c)

    check()
    store = reopen()
    for c, model in models.items():
        _check_against(model, store, c)


def _check_against(model: _Model, store: Store, c: CollectionId) -> None:
    snapshot = store.snapshot(c)
    assert (snapshot.since, snapshot.upper) == (at(model.since), at(model.upper))
    for time in range(model.since, model.upper):
        assert snapshot.accumulate(Timestamp(time)) == model.accumulate(time)
    places = [(update.time, update.data) for update in snapshot.updates]
    assert places == sorted(set(places)), "updates are not sorted, or not summed"
    assert all(update.diff for update in snapshot.updates), "an update that cancels is kept"
    assert all(time >= model.since for time, _ in places), "an update before since"


CASES: Final[tuple[Case, ...]] = (
    compaction_sums_what_it_folds,
    an_append_may_compact,
    since_only_advances_and_stays_before_upper,
    contents_are_readable_in_the_definite_interval_only,
    a_follower_behind_since_is_told,
    compaction_changes_no_readable_contents,
)
