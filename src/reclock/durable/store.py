"""Durable collections of updates, and the one way to write them.

Definition. A collection is a multiset of updates ``(data, time, diff)`` with two
frontiers. It is *definite* in ``[since, upper)``: for every t in it, the accumulation ::

    A(t) = { data: Σ diff of the updates with time ≤ t }

is complete (nothing at a time before ``upper`` will ever be added) and right (``since``
permits compaction, which may replace a time ≤ since by since). A new collection has
``since = upper = {0}``; ``upper = {}`` means closed: it is complete at every time.

Compare-and-append. ``append`` takes, for one or several collections, the updates of the
interval ``[expected_upper, new_upper)`` and does all of it or nothing, in one
transaction. If the upper of a collection is not the expected one, nothing is written
and the answer (not an exception: losing a race is normal) names that collection and its
upper. Intervals of successive appends meet, so an append that is repeated after a crash
cannot count twice: its expected upper is gone.

    updates empty            time passes: upper advances
    new_upper = {}           the collection is closed
    new_upper = expected     nothing is written; only the expectation is checked

Crash. What ``append`` wrote is durable when it returns. A crash, or an ``OutcomeUnknown``
from a connection lost during commit, leaves all or nothing of it. To know which, repeat
the append: if it succeeds, the first wrote nothing; if the current upper is its
``new_upper``, the first wrote all of it (the owner is the only writer). Reading the upper
tells as much once the lost transaction has ended, which every write waits for.

Compaction. ``since`` only advances, and stays strictly before ``upper``, so that some time remains
readable; only a closed collection may go further, even to ``{}``, where nothing is readable and its
updates are gone. Updates at times ≤ since read as if at since, summed by data; those that cancel
disappear. Accumulations at every t beyond the new since are unchanged. Cost: proportional to the
updates in ``(old since, new since]`` and those they are summed with, not to the collection. An
append may compact the collection in the same transaction: so a collection whose history is never
read holds only its contents.

Versions. A collection records the newest version of the records in it. ``open`` with an
older version raises ``NewerFormat``; with a newer one raises the recorded version, and
from then on readers of the older version are refused. The reader of version n reads the
records of versions 1 … n. ``data`` is text that the caller encodes and decodes.

P1, P2 and P5 stand on this file. Checked for every store by
tests/durable/test_conformance.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from reclock.errors import InvalidValue, Unreadable
from reclock.time.antichain import Antichain
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from reclock.ids import CollectionId

BEGINNING: Final[Antichain[Timestamp]] = Antichain.of(Timestamp(0))
"""``{0}``: the since and upper of a new collection."""


@dataclass(frozen=True, slots=True)
class StoredUpdate:
    """``diff`` copies of ``data`` appear (or, negative, disappear) at ``time``."""

    data: str
    time: Timestamp
    diff: int

    def __post_init__(self) -> None:
        """Refuse what some store could not keep: only text without NUL, only int64."""
        if not -INT64_MAX <= self.diff <= INT64_MAX:
            message = f"diff {self.diff} is out of range"
            raise InvalidValue(message)
        if "\0" in self.data or not (self.data.isascii() or _is_unicode(self.data)):
            message = "data must be Unicode text without NUL characters"
            raise InvalidValue(message, detail=f"the data is {self.data!r}")


def _is_unicode(text: str) -> bool:
    """Whether ``text`` has no lone surrogates, and so can be written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class CollectionState:
    """What a store knows of a collection besides its updates."""

    collection: CollectionId
    version: int
    since: Antichain[Timestamp]
    upper: Antichain[Timestamp]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Updates of a collection with the frontiers of the same moment.

    Updates come sorted by time, then data, at most one for each pair, with a diff that is
    not zero and a time beyond ``state.since``.
    """

    state: CollectionState
    updates: tuple[StoredUpdate, ...]

    @property
    def since(self) -> Antichain[Timestamp]:
        """The earliest readable time."""
        return self.state.since

    @property
    def upper(self) -> Antichain[Timestamp]:
        """The times that are not complete yet."""
        return self.state.upper

    def accumulate(self, time: Timestamp) -> dict[str, int]:
        """Return ``A(time)``: how often each data is present, without the absent ones.

        Refused outside of ``[since, upper)``, where the sum would be wrong or incomplete.
        """
        if not self.since.less_equal(time) or self.upper.less_equal(time):
            message = f'collection "{self.state.collection}" is not readable at {time}'
            raise Unreadable(message, detail=f"it is definite in [{self.since}, {self.upper})")
        counts: dict[str, int] = {}
        for update in self.updates:
            if update.time <= time:
                counts[update.data] = counts.get(update.data, 0) + update.diff
        return {data: count for data, count in counts.items() if count}


@dataclass(frozen=True, slots=True)
class Append:
    """All updates of ``collection`` in ``[expected_upper, new_upper)``.

    >>> from reclock.ids import CollectionId
    >>> at = lambda t: Antichain.of(Timestamp(t))
    >>> late = StoredUpdate("x", Timestamp(9), 1)
    >>> Append(CollectionId("remap/u1"), (late,), at(3), at(7))
    Traceback (most recent call last):
    reclock.errors.InvalidValue: update at time 9 is outside the appended interval
    detail: collection remap/u1, interval [{3}, {7})
    """

    collection: CollectionId
    updates: tuple[StoredUpdate, ...]
    expected_upper: Antichain[Timestamp]
    new_upper: Antichain[Timestamp]
    since: Antichain[Timestamp] | None = None
    """What to compact to with it; without updates nothing is to be folded, and since stays."""

    def __post_init__(self) -> None:
        """Refuse an upper that goes back, and updates outside the interval."""
        if not self.expected_upper.precedes(self.new_upper):
            message = f"upper of {self.collection} may not go back"
            detail = f"from {self.expected_upper} to {self.new_upper}"
            raise InvalidValue(message, detail=detail)
        for update in self.updates:
            inside = self.expected_upper.less_equal(update.time)
            if not inside or self.new_upper.less_equal(update.time):
                message = f"update at time {update.time} is outside the appended interval"
                interval = f"[{self.expected_upper}, {self.new_upper})"
                detail = f"collection {self.collection}, interval {interval}"
                raise InvalidValue(message, detail=detail)


@dataclass(frozen=True, slots=True)
class UpperMismatch:
    """Nothing was written: ``collection`` is at ``current_upper``, not where expected."""

    collection: CollectionId
    current_upper: Antichain[Timestamp]


class Store(Protocol):
    """Durable collections; see the head of this module for what each call promises.

    One process owns a store at a time. Its threads may share it: calls are serialized or
    isolated as if they came one after another. Errors of all calls: ``StorageError`` and
    its subclasses, of which ``Fenced`` means another process took over; ``InvalidValue``
    for a collection that was not opened.
    """

    def open(self, collection: CollectionId, version: int) -> CollectionState:
        """Return the state of ``collection``, creating it at ``{0}`` if there is none.

        Raises ``NewerFormat`` if it holds records newer than ``version``.
        """
        ...

    def state(self, collection: CollectionId) -> CollectionState:
        """Return the frontiers of ``collection``."""
        ...

    def collections(self, prefix: str = "") -> tuple[CollectionState, ...]:
        """Return the collections whose id begins with ``prefix``, sorted by id."""
        ...

    def snapshot(self, collection: CollectionId) -> Snapshot:
        """Return all updates, with the frontiers of the same moment."""
        ...

    def updates(self, collection: CollectionId, lower: Antichain[Timestamp]) -> Snapshot:
        """Return the updates beyond ``lower``: what a reader of all before it lacks.

        Raises ``Unreadable`` if ``since`` has reached ``lower``: an update that the reader
        has may have been moved to since. Take a snapshot then.
        """
        ...

    def append(self, appends: Sequence[Append]) -> UpperMismatch | None:
        """Append to every collection, or to none and say whose upper was another.

        No collection may be named twice. Raises ``InvalidCompaction``, and appends nothing,
        if the since of an append would go back or reach its new upper.
        """
        ...

    def compact(self, collection: CollectionId, since: Antichain[Timestamp]) -> None:
        """Let the collection forget what is told apart only before ``since``.

        Raises ``InvalidCompaction`` if since would go back or reach upper.
        """
        ...

    def drop(self, collection: CollectionId) -> None:
        """Forget the collection whole; nothing happens if there is none."""
        ...

    def check_owner(self) -> None:
        """Raise ``Fenced`` unless this process owns the store, now; nothing is written.

        Every write checks it too. This is for what is done to others in the owner's name.
        """
        ...

    def close(self) -> None:
        """Give the store up; nothing durable changes."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
