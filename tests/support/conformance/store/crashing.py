"""Cases about crashes: at every failpoint of a store, then reopened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.store.kit import append, at, fresh, refused, up
from reclock.durable.store import Append, UpperMismatch
from reclock.failpoints import NAMES, FailpointRaised, armed
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from conformance.store.kit import Case, Reopen


def a_crash_leaves_all_or_nothing_of_an_append(reopen: Reopen) -> None:
    """Check an append to two collections: repeated after the crash, it counts once."""
    for point in [name for name in NAMES if name.startswith(("durable.append", "durable.commit"))]:
        store = reopen()
        a, b = fresh(store, "a", "b")
        both = [Append(x, (up("x", 2), up("y", 3)), at(0), at(5)) for x in (a, b)]
        with armed({point: "raise"}):
            refused(FailpointRaised, store.append, both)
        store = reopen()
        written = point == "durable.commit.after"
        for x in (a, b):
            assert store.state(x).upper == (at(5) if written else at(0)), point
            assert len(store.snapshot(x).updates) == (2 if written else 0), point
        assert store.append(both) == (UpperMismatch(a, at(5)) if written else None)
        for x in (a, b):
            assert store.snapshot(x).accumulate(Timestamp(4)) == {"x": 1, "y": 1}


def a_crash_in_a_compaction_changes_no_contents(reopen: Reopen) -> None:
    """Check that since is the old or the new one, and A(t) beyond it is the same."""
    for point in [name for name in NAMES if name.startswith("durable.compact")]:
        store = reopen()
        (c,) = fresh(store, "c")
        append(store, c, [up("a", t, (-1) ** t) for t in range(8)], at(0), at(8))
        contents = [store.snapshot(c).accumulate(Timestamp(t)) for t in range(8)]
        with armed({point: "raise"}):
            refused(FailpointRaised, store.compact, c, at(5))
        store = reopen()
        snapshot = store.snapshot(c)
        since = 5 if point == "durable.compact.after" else 0
        assert snapshot.since == at(since), point
        assert len(snapshot.updates) == (2 if since else 8), point
        assert [snapshot.accumulate(Timestamp(t)) for t in range(since, 8)] == contents[since:]
        store.compact(c, at(5))
        assert store.snapshot(c).updates == (up("a", 6), up("a", 7, -1))


def a_failed_append_leaves_the_store_usable(reopen: Reopen) -> None:
    """Check that an error in the middle is rolled back, and the same store goes on."""
    store = reopen()
    (c,) = fresh(store, "c")
    with armed({"durable.commit.before": "raise"}):
        refused(FailpointRaised, append, store, c, [up("a", 0)], at(0), at(1))
    assert store.snapshot(c).updates == ()
    assert append(store, c, [up("b", 0)], at(0), at(1)) is None
    assert store.snapshot(c).updates == (up("b", 0),)


CASES: Final[tuple[Case, ...]] = (
    a_crash_leaves_all_or_nothing_of_an_append,
    a_crash_in_a_compaction_changes_no_contents,
    a_failed_append_leaves_the_store_usable,
)
