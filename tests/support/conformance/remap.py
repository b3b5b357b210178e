"""What every ``RemapHandle`` must do: see the contract in ``reclock.remap.handle``.

Each case is a function of ``reopen``, which gives a handle on an unbound remap of
``codec.KAFKA`` at its first call, and on later calls what the next process finds.
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
    from collections.abc import Callable
    from typing import TypeAlias

    from reclock.remap.handle import RemapHandle
    from reclock.remap.trace import Frontier

    Handle: TypeAlias = RemapHandle[KafkaPosition]
    Reopen: TypeAlias = Callable[[], Handle]
    Case: TypeAlias = Callable[[Reopen], None]


def _bind(handle: Handle, time: int, offsets: dict[int, int] | None) -> Frontier | None:
    """Append a binding to what ``handle`` holds; ``None`` binds the closed frontier."""
    remap = handle.load()
    frontier = Antichain[KafkaPosition]() if offsets is None else KafkaPosition.frontier(offsets)
    upper = CLOSED if offsets is None else at(time + 1)
    return handle.append(remap.changes(Timestamp(time), frontier), remap.upper, upper)


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
    assert handle.append(updates, UNBOUND, at(21)) == at(11)
    assert handle.append([], at(15), at(16)) == at(11)
    assert handle.load() == before
    assert reopen().load() == before


def a_sealed_remap_stays_sealed(reopen: Reopen) -> None:
    """Check a source that completes, compacted to before and to after its end."""
    handle = reopen()
    _bind(handle, 10, {0: 5})
    _bind(handle, 20, None)
    sealed = handle.load()
    assert sealed.is_sealed
    assert handle.append([], at(21), at(30)) == CLOSED
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
