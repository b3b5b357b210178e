"""All subscriptions of a database: who is woken when, and what is kept for them.

**Waking.** A subscriber that has nothing to read is *parked*. With a background loop one
thread looks at every new world, after the tick that made it has let go of its lock, and wakes
those for whom there is something in it; a tick itself only says that the world has moved.

**Transient views.** A query that is followed is kept like a materialized view for as long as it has
subscribers (``catalog_change.change_transients``); the same query, by the fingerprint of its plan,
is kept once. ``lease`` counts; views without a lease are removed by ``sweep``: by the thread, or,
without a loop, whenever a subscription closes or opens, or a tick runs.

**Lost subscriptions.** A handle that is garbage cannot let go by itself: its finaliser may run
anywhere, also under a lock. It leaves its ``Grip``, and its ``Pin`` if it was in the middle of
something, in ``lost``, and ``sweep`` lets go.

Tests: tests/subscribe/test_subscribe.py.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, ClassVar, Final, Protocol
from weakref import WeakSet

from reclock.catalog.item import MaterializedView
from reclock.dataflow.render.build import key_of
from reclock.engine.catalog_change import change_transients
from reclock.engine.object_changes import Steps
from reclock.errors import Error
from reclock.ids import HolderId, ObjectId
from reclock.sql.as_of import time_of
from reclock.sql.plan.relation import Get, walk
from reclock.sql.plan.temporal import is_temporal
from reclock.time.expiry import DataflowKind
from reclock.time.frontier import CLOSED, at
from reclock.time.pace import timeline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.catalog.catalog import Catalog
    from reclock.engine.core import Core
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.sql.plan.node import Node
    from reclock.subscribe.target import Target
    from reclock.time.frontier import Frontier
    from reclock.time.holds import Hold
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

PATIENCE: Final = 0.05
"""How many seconds those who wait are left in peace while a tick is at work."""


@dataclass(frozen=True)
class Transient(MaterializedView):
    """A query that is kept while it has subscribers, up to ``up_to`` if that is known."""

    kind: ClassVar[str] = "query"
    dataflow: ClassVar[DataflowKind] = DataflowKind.SUBSCRIBE

    up_to: Timestamp | None = None

    @property
    def until(self) -> Frontier:
        """The time from which it is not read."""
        return CLOSED if self.up_to is None else at(self.up_to)


@dataclass(frozen=True)
class Query:
    """A query that is to be kept, and the objects that must not be dropped meanwhile."""

    plan: Node
    pace: Pace
    depends: frozenset[ObjectId]
    up_to: Timestamp | None = None

    @classmethod
    def of(cls, plan: Node, catalog: Catalog) -> Query:
        """Return the query of a plan, which reads something."""
        read = frozenset(node.item for node in walk(plan) if isinstance(node, Get))
        timeline = plan.timeline.timeline
        assert timeline is not None
        return cls(plan, catalog.pace(timeline, read), read)

    @classmethod
    def followed(cls, target: Target) -> Query:
        """Return the query that a subscription follows."""
        assert target.pace is not None
        return cls(target.plan, target.pace, frozenset(target.names), _end(target))

    @property
    def name(self) -> tuple[Pace, str, Timestamp | None]:
        """What tells queries apart that are kept."""
        return self.pace, self.plan.fingerprint, self.up_to

    def view(self, number: int) -> Transient:
        """Return the view that keeps it."""
        item, name = ObjectId(f"x{number}"), f"kept query {number}"
        return Transient(
            item, name, "", timeline_of(self.pace), self.depends,
            plan=self.plan, key=key_of(self.plan), up_to=self.up_to,
        )  # fmt: skip


class Lease:
    """A transient view, and how many subscriptions follow it."""

    def __init__(self, view: Transient) -> None:
        self.view = view
        self.users = 0


class Grip:
    """What a subscription keeps from others: history, and the view of its query."""

    def __init__(self, subscribers: Subscribers, holder: HolderId) -> None:
        self._subscribers = subscribers
        self.holder = holder
        self.holds: list[Hold] = []
        """On what is read now, and then on what is read later."""
        self.lease: Lease | None = None

    def release(self) -> None:
        """Let go of everything; again is harmless."""
        while self.holds:
            self.holds.pop().release()
        lease, self.lease = self.lease, None
        if lease is not None:
            self._subscribers.give_back(lease)

    def lose(self) -> None:
        """Have another thread let go, later: takes no lock."""
        if self.holds or self.lease is not None:
            self._subscribers.lost.append(self)


class Pin:
    """A world whose segments stay until it is released, once."""

    def __init__(self, core: Core, world: World) -> None:
        core.pin(world)
        self._core = core
        self._world = world

    def release(self) -> None:
        """Let the segments go."""
        self._core.unpin(self._world)


class Open(Protocol):
    """A subscription, as much as is needed to end it."""

    @property
    def holder(self) -> HolderId:
        """As whom it holds what it has not given yet."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Waking(Protocol):
    """What is told that there is something to read: an event of threads, or of a loop."""

    def set(self) -> None:
        """Wake who waits; called from any thread."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Parked:
    """A subscriber that waits, and what it waits for."""

    event: Waking
    wants: Callable[[World], bool]


class Subscribers:
    """The subscriptions of a database."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.steps = Steps()
        self.lost: deque[Grip | Pin] = deque()
        self._lock = threading.Lock()
        self._holders = count(1)
        self._views = count(1)
        self._leases: dict[tuple[Pace, str, Timestamp | None], Lease] = {}
        self._open: WeakSet[Open] = WeakSet()
        self._parked: set[Parked] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    def grip(self) -> Grip:
        """Return the means for one more subscription to hold things."""
        return Grip(self, HolderId(f"subscribe/{next(self._holders)}"))

    def opened(self, subscription: Open) -> None:
        """Remember a subscription, to close it with the database."""
        with self._lock:
            self._open.add(subscription)

    def holders(self) -> set[HolderId]:
        """Return as whom the subscriptions that are open hold things."""
        with self._lock:
            return {subscription.holder for subscription in self._open}

    def close(self) -> None:
        """End all subscriptions; those who wait are woken."""
        self._closed = True
        with self._lock:
            known = tuple(self._open)
        for subscription in known:
            subscription.close()
        with self.core.moved:
            self.core.moved.notify_all()
        if self._thread is not None:
            self._thread.join()

    # Views that are kept for queries.

    def number(self) -> int:
        """Return the number of a view that may be needed."""
        return next(self._views)

    def view(self, query: Query, number: int, world: World) -> Transient:
        """Return the view that keeps a query: one that does, or a new one."""
        found = self._leases.get(query.name)
        if found is not None and found.view.id in world.transients:
            return found.view
        return query.view(number)

    def lease(self, query: Query, view: Transient, prepared: Prepared | None) -> Lease:
        """Keep a query, unless it is kept already; hold the lock of the core."""
        found = self._leases.get(query.name)
        if found is None or found.view is not view:
            change_transients(self.core, [view], prepared=prepared)
            found = self._leases[query.name] = Lease(view)
        with self._lock:
            found.users += 1
        return found

    def give_back(self, lease: Lease) -> None:
        """Have one user less of a lease."""
        with self._lock:
            lease.users -= 1

    def sweep(self) -> bool:
        """Let go of what was lost, and remove the views without subscribers; return if it could.

        It does not wait for a tick under way that still has them.
        """
        while self.lost:
            self.lost.popleft().release()
        if self._closed or not self._unused():
            return True
        with self.core.writing() as world:
            used = {name: lease for name, lease in self._leases.items() if lease.users}
            gone = world.transients.keys() - {lease.view.id for lease in used.values()}
            if self.core.flights.among(world.paces(world.transients[i] for i in gone)):
                return False
            if gone:
                change_transients(self.core, removed=gone)
            self._leases = used
        return True

    def let_go(self) -> None:
        """Sweep after a subscription has ended: now, or by the thread if there is a loop."""
        if self.core.loop is None:
            with suppress(Error):  # stays until the next sweep
                self.sweep()
        else:
            self._start()
            with self.core.moved:
                self.core.moved.notify_all()

    # Waking.

    @contextmanager
    def parking(self, parked: Parked) -> Iterator[None]:
        """Wake a waiter, in the block, whenever there is something that it wants."""
        self._start()
        with self._lock:
            self._parked.add(parked)
        try:
            if parked.wants(self.core.world):
                parked.event.set()
            yield
        finally:
            with self._lock:
                self._parked.discard(parked)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                name = "reclock-subscribe"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        core = self.core
        seen: tuple[World, object] | None = None
        swept = True

        def now() -> tuple[World, object]:
            return core.world, None if core.loop is None else core.loop.failures

        def unseen() -> bool:
            world, failures = now()
            moved = seen is None or world is not seen[0] or failures is not seen[1]
            return self._closed or moved or (swept and self._work_left())

        while True:
            with core.moved:
                core.moved.wait_for(unseen)
            if self._closed:
                return
            if core.lock.acquire(timeout=PATIENCE):  # the tick that moved the world is over
                core.lock.release()
            world, failures = now()
            failed = seen is not None and failures is not seen[1]
            moved = seen is None or _moved(seen[0], world)
            seen = world, failures
            swept = False  # what cannot be removed now is tried again when the world has moved
            with suppress(Error):
                swept = self.sweep()
            if failed or moved:
                self._wake(world, everybody=failed)

    def _wake(self, world: World, *, everybody: bool) -> None:
        with self._lock:
            parked = tuple(self._parked)
        for one in parked:
            if everybody or one.wants(world):
                one.event.set()

    def _work_left(self) -> bool:
        return bool(self.lost) or self._unused()

    def _unused(self) -> bool:
        """Return whether a view without subscribers is kept, or a lease is of no use."""
        leases = tuple(self._leases.values())
        used = {lease.view.id for lease in leases if lease.users}
        return len(used) < len(leases) or not used >= self.core.world.transients.keys()


def _moved(before: World, after: World) -> bool:
    """Return whether a subscriber could care: a write that is pending is nothing to read yet."""
    if before.catalog is not after.catalog or before.transients is not after.transients:
        return True
    known = before.timelines
    return any(t not in known or known[t].upper != s.upper for t, s in after.timelines.items())


def _end(target: Target) -> Timestamp | None:
    """Return until when a query is followed whose rows go by themselves, if that is known."""
    given = target.statement.up_to
    if given is None or not any(map(is_temporal, walk(target.plan))):
        return None
    return time_of(given, target.timeline)
