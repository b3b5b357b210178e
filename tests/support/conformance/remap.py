"""What a stored remap must do, over every store.

Each case is a function of ``reopen``, which gives the unbound remap of a source at its first
call, and on later calls what the next process finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.store.kit import CLOSED, at, refused
from reclock.errors import InvalidCompaction
from reclock.remap.codec import KAFKA
from reclock.remap.trace import UNBOUND, Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from reclock.change.update import Update
    from reclock.durable.remap_store import RemapStore
    from reclock.remap.trace import Frontier

    Handle: TypeAlias = RemapStore[KafkaPosition]
    Reopen: TypeAlias = Callable[[], Handle]
    Case: TypeAlias = Callable[[Reopen], None]


def _append(
    handle: Handle,
    updates: Sequence[Update[KafkaPosition, Timestamp]],
    expected: Frontier,
    upper: Frontier,
) -> Frontier | None:
    """Append as a tick does; if the upper is not ``expected``, return it."""
    mismatch = handle._store.append([handle.as_append(updates, expected, upper)])
    return None if mismatch is None else mismatch.current_upper


def _bind(handle: Handle, time: int, offsets: dict[int, int] | None) -> Frontier | None:
    """Append a binding to what ``handle`` holds; ``None`` binds the closed frontier."""
    remap = handle.load()
    frontier = Antichain[KafkaPosition]() if offsets is None else KafkaPosition.frontier(offsets)
    upper = CLOSED if offsets is None else at(time + 1)
    return _append(handle, remap.changes(Timestamp(time), frontier), remap.upper, upper)


def a_new_remap_is_unbound(reopen: Reopen) -> None:
    """Check the first load, and that it is the same for who comes later."""
    assert reopen().load() == Remap.unbound(KAFKA.origin)
    assert reopen().load() == Remap.unbound(KAFKA.origin)


def what_is_appended_is_loaded(reopen: Reopen) -> None:
    """Check bindings, idle time and a new partition, now and for the next process."""
    handle = reopen()
    expected = Remap.unbound(KAFKA.origin)
    for time, offsets in ((10, {0: 5}), (20, {0: 5}), (30, {0: 5, 7: 1})):
        assert _bind(handle, time, offsets) is None
        expected = expected.bound(Timestamp(time), KafkaPosition.frontier(offsets))
        assert handle.load() == expected
    assert [b.time for b in expected.bindings] == [0, 10, 30]
    assert reopen().load() == expected


def the_loser_is_told_the_upper_and_writes_nothing(reopen: Reopen) -> None:
    """Check an append whose expectation is behind, and one ahead."""
    handle = reopen()
    first = Remap.unbound(KAFKA.origin)
    assert _bind(handle, 10, {0: 5}) is None
    before = handle.load()
    updates = first.changes(Timestamp(20), KafkaPosition.frontier({0: 9}))
    assert _append(handle, updates, UNBOUND, at(21)) == at(11)
    assert _append(handle, [], at(15), at(16)) == at(11)
    assert handle.load() == before
    assert reopen().load() == before


def a_sealed_remap_stays_sealed(reopen: Reopen) -> None:
    """Check a source that completes, compacted to before and to after its end."""
    handle = reopen()
    _bind(handle, 10, {0: 5})
    _bind(handle, 20, None)
    sealed = handle.load()
    assert sealed.is_sealed
    assert _append(handle, [], at(21), at(30)) == CLOSED
    for since in (15, 20, 500):
        handle.compact(Timestamp(since))
        assert handle.load() == sealed.compacted(Timestamp(since))
        handle = reopen()
        assert handle.load() == sealed.compacted(Timestamp(since))


def compaction_folds_and_stays_inside_the_interval(reopen: Reopen) -> None:
    """Check that it equals the rule, may be repeated, and never goes back or ahead."""
    handle = reopen()
    for n in range(1, 6):
        _bind(handle, 10 * n, {0: n, **dict.fromkeys(range(1, n + 1), 1)})
    whole = handle.load()
    for since in (25, 25, 40):
        handle.compact(Timestamp(since))
        assert handle.load() == whole.compacted(Timestamp(since))
    for bad in (39, 51):
        refused(InvalidCompaction, handle.compact, Timestamp(bad))
    handle = reopen()
    assert handle.load() == whole.compacted(Timestamp(40))
    assert _bind(handle, 60, {0: 9, **dict.fromkeys(range(1, 6), 1)}) is None


CASES: Final[tuple[Case, ...]] = (
    a_new_remap_is_unbound,
    what_is_appended_is_loaded,
    the_loser_is_told_the_upper_and_writes_nothing,
    a_sealed_remap_stays_sealed,
    compaction_folds_and_stays_inside_the_interval,
)
