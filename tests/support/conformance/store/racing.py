"""Cases about threads that share a store, and processes that take it over."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from conformance.store.kit import append, at, fresh, refused, up
from reclock.durable.store import UpperMismatch
from reclock.errors import Fenced
from reclock.ids import CollectionId

if TYPE_CHECKING:
    from conformance.store.kit import Case, Reopen


def one_of_many_appenders_wins(reopen: Reopen) -> None:
    """Check that of racing threads one appends each interval, and losers know the upper."""
    store = reopen()
    (c,) = fresh(store, "c")
    rounds, racers = 8, 4
    ready = threading.Barrier(racers)

    def race(racer: int) -> list[UpperMismatch | None]:
        answers = []
        for t in range(rounds):
            ready.wait()
            answers.append(append(store, c, [up(f"{racer}", t)], at(t), at(t + 1)))
        return answers

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(race, range(racers)))
    for t, answers_at_t in enumerate(zip(*answers, strict=True)):
        assert answers_at_t.count(None) == 1
        assert set(answers_at_t) == {None, UpperMismatch(c, at(t + 1))}
    times = [update.time for update in store.snapshot(c).updates]
    assert times == list(range(rounds))


def a_reader_sees_whole_moments(reopen: Reopen) -> None:
    """Check that a snapshot has exactly the updates before its upper."""
    store = reopen()
    (c,) = fresh(store, "c")
    ticks = 40

    def write() -> None:
        for t in range(ticks):
            append(store, c, [up("row", t), up("gone", t, (-1) ** t)], at(t), at(t + 1))
            if t % 5 == 4:
                store.compact(c, at(t - 1))

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        while not writer.done():
            snapshot = store.snapshot(c)
            upper = snapshot.upper.element()
            expected = {"row": int(upper), "gone": upper % 2}
            present = {k: n for k, n in expected.items() if n}
            assert upper == 0 or snapshot.accumulate(upper.back()) == present
        writer.result()
    assert store.state(c).upper == at(ticks)


def a_newer_owner_fences_the_older(reopen: Reopen) -> None:
    """Check that the older can still read, and writes nothing of any kind."""
    old = reopen()
    (c,) = fresh(old, "c")
    append(old, c, [up("a", 0), up("a", 1, -1)], at(0), at(5))
    new = reopen()
    for write in (
        lambda: append(old, c, [up("ghost", 5)], at(5), at(6)),
        lambda: append(old, c, [], at(0), at(1)),
        lambda: old.compact(c, at(3)),
        lambda: old.drop(c),
        lambda: old.open(CollectionId(f"{c}/other"), 1),
        lambda: old.open(c, 2),
        old.check_owner,
    ):
        error = refused(Fenced, write)
        assert error.code == "57P04"
        assert error.detail
    assert old.state(c).upper == at(5)
    assert new.state(c).since == at(0)
    assert len(new.snapshot(c).updates) == 2
    new.check_owner()
    assert append(new, c, [up("b", 5)], at(5), at(6)) is None
    assert new.collections(f"{c}/") == ()


CASES: Final[tuple[Case, ...]] = (
    one_of_many_appenders_wins,
    a_reader_sees_whole_moments,
)

FENCING_CASES: Final[tuple[Case, ...]] = (a_newer_owner_fences_the_older,)
