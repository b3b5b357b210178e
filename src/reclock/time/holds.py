"""Holds: tokens that keep history readable for their owners.

Definition. A hold on an object at frontier h says: its owner may still read at h or
later, so ``since`` may not pass h. A ``Holds`` ledger knows the since of every object and
the holds on it::

    permitted(object)  =  meet of the holds on it, {} (no limit) for none
    since(object)      ≤  permitted(object)                                  always

Sinks, subscribes, open transactions and dataflows on their inputs hold history back with
this and nothing else; the ledger's rows are the relation ``holds(object, holder, since)``.

Rules.

- ``acquire`` takes several objects at once, or none of them: it is refused whole if any
  has forgotten what is asked for. Without a frontier each is held at its own since.
- ``downgrade`` moves a hold forward, never back; all its objects, or none.
- ``release`` may be called again and from any thread. A token is a context manager. One that is
  lost without release holds for ever: history is kept, nothing is wrong, and the relation names the
  holder. (A finaliser would release at an arbitrary time.)
- ``advance`` moves since as far as wanted and permitted, in one step with looking at the
  holds, so no hold can be acquired in between at what is just being forgotten. Compaction
  of stored data follows the ledger, never leads it.
- Dropping an object is advancing it to ``{}``: since gets there when the last hold is
  gone, and then ``forget`` ends the entry.

Cost: O(k) for k objects of a hold, times the distinct frontiers held on each. One lock
for the ledger; nothing of the caller runs under it.

Tested with threads and against a model: tests/time/test_holds.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self

from reclock.errors import HoldViolation, InvalidValue
from reclock.time.counted import CountedAntichain
from reclock.time.frontier import BEGINNING, CLOSED, Frontier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from reclock.ids import HolderId, ObjectId
    from reclock.time.timestamp import Timestamp


class HoldRow(NamedTuple):
    """One row of the relation ``holds``."""

    object: ObjectId
    holder: HolderId
    since: Frontier


class Hold:
    """A token made by ``Holds.acquire``; the ledger knows what it holds."""

    def __init__(self, ledger: Holds, holder: HolderId) -> None:
        self._ledger = ledger
        self.holder = holder

    @property
    def sinces(self) -> Mapping[ObjectId, Frontier]:
        """What is held on each object; empty after release."""
        return self._ledger.held_by(self)

    @property
    def released(self) -> bool:
        """Whether this token holds nothing any more."""
        return not self.sinces

    def downgrade(self, to: Frontier) -> None:
        """Hold only ``to`` and later from now on; ``{}`` releases."""
        self._ledger.downgrade(self, to)

    def release(self) -> None:
        """Hold nothing any more; again is harmless."""
        self._ledger.release(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        held = ", ".join(f"{o} at {f}" for o, f in sorted(self.sinces.items()))
        return f"Hold({self.holder}: {held or 'released'})"


@dataclass(slots=True)
class _Entry:
    """An object's since, and how often each frontier is held on it."""

    since: Frontier
    held: CountedAntichain[Timestamp] = field(default_factory=CountedAntichain)


class Holds:
    """The ledger of all holds of a process.

    >>> from reclock.ids import HolderId, ObjectId
    >>> from reclock.time.frontier import at
    >>> holds, orders = Holds(), ObjectId("u1")
    >>> holds.track(orders, since=at(10))
    >>> with holds.acquire(HolderId("subscribe/4"), [orders]) as hold:
    ...     hold.downgrade(at(25))
    ...     holds.advance(orders, at(90))
    {25}
    >>> holds.advance(orders, at(90))
    {90}
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[ObjectId, _Entry] = {}
        self._tokens: dict[Hold, dict[ObjectId, Frontier]] = {}

    def track(self, object_id: ObjectId, since: Frontier = BEGINNING) -> None:
        """Begin to keep the since of an object."""
        with self._lock:
            if object_id in self._entries:
                message = f"{object_id} is tracked already"
                raise InvalidValue(message)
            self._entries[object_id] = _Entry(since)

    def forget(self, object_id: ObjectId) -> None:
        """End an object's entry; refused while anybody holds it."""
        with self._lock:
            if not self._entry(object_id).held.frontier.is_closed:
                holders = sorted({row.holder for row in self._rows() if row.object == object_id})
                message = f"{object_id} is still held"
                raise HoldViolation(message, detail=f"held by {', '.join(holders)}")
            del self._entries[object_id]

    def since(self, object_id: ObjectId) -> Frontier:
        """Return the since of an object."""
        with self._lock:
            return self._entry(object_id).since

    def permitted(self, object_id: ObjectId) -> Frontier:
        """Return how far the holds let since go; ``{}`` without a hold on the object."""
        with self._lock:
            return self._entry(object_id).held.frontier

    def rows(self) -> tuple[HoldRow, ...]:
        """Return who holds what, by object, holder and frontier."""
        with self._lock:
            return self._rows()

    def held_by(self, hold: Hold) -> Mapping[ObjectId, Frontier]:
        """Return what ``hold`` holds on each object."""
        with self._lock:
            return dict(self._tokens.get(hold, {}))

    def acquire(
        self, holder: HolderId, objects: Iterable[ObjectId], since: Frontier | None = None
    ) -> Hold:
        """Hold all of ``objects`` at ``since``, or each at its own; all or none."""
        with self._lock:
            kept = {object_id: self._entry(object_id).since for object_id in objects}
            wanted = kept if since is None else dict.fromkeys(kept, since)
            refused = [
                f"{object_id} is kept from {floor} on"
                for object_id, floor in kept.items()
                if floor.is_closed or not floor.precedes(wanted[object_id])
            ]
            if refused:
                asked = "what is dropped" if since is None else f"{since}: it is no longer kept"
                message = f"{holder} cannot hold {asked}"
                raise HoldViolation(message, detail=", ".join(refused))
            hold = Hold(self, holder)
            self._hold(hold, wanted)
            return hold

    def downgrade(self, hold: Hold, to: Frontier) -> None:
        """Move all that ``hold`` holds forward to ``to``; refused whole if any would go back."""
        with self._lock:
            held = self._tokens.get(hold)
            if held is None:
                message = f"{hold.holder} cannot downgrade to {to}: its hold is released"
                raise HoldViolation(message)
            for object_id, since in held.items():
                if not since.precedes(to):
                    message = f"{hold.holder} cannot downgrade its hold from {since} to {to}"
                    detail = f"on {object_id}; a hold only moves forward"
                    raise HoldViolation(message, detail=detail)
            self._hold(hold, dict.fromkeys(held, to))

    def release(self, hold: Hold) -> None:
        """Let ``hold`` hold nothing any more."""
        with self._lock:
            self._hold(hold, {})

    def advance(self, object_id: ObjectId, wanted: Frontier) -> Frontier:
        """Move since towards ``wanted`` as far as holds permit; return where it is then."""
        with self._lock:
            entry = self._entry(object_id)
            entry.since = entry.since.join(wanted.meet(entry.held.frontier))
            return entry.since

    def _hold(self, hold: Hold, sinces: Mapping[ObjectId, Frontier]) -> None:
        """Count ``hold`` at ``sinces`` instead of where it was."""
        before = self._tokens.pop(hold, {})
        after = {object_id: since for object_id, since in sinces.items() if not since.is_closed}
        for object_id in before.keys() | after.keys():
            gone = [(t, -1) for t in before.get(object_id, CLOSED)]
            come = [(t, 1) for t in after.get(object_id, CLOSED)]
            self._entries[object_id].held.update(gone + come)
        if after:
            self._tokens[hold] = after

    def _entry(self, object_id: ObjectId) -> _Entry:
        entry = self._entries.get(object_id)
        if entry is None:
            message = f"{object_id} is not tracked"
            raise InvalidValue(message)
        return entry

    def _rows(self) -> tuple[HoldRow, ...]:
        rows = [
            HoldRow(o, t.holder, f) for t, held in self._tokens.items() for o, f in held.items()
        ]
        return tuple(sorted(rows, key=lambda r: (r.object, r.holder, tuple(r.since))))
