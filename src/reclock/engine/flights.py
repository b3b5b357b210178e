"""Ticks under way without the lock: what they keep, and how they land.

A pace has at most one such tick (``tick``). While it runs

- the segments of the world that it started from stay; none at all are removed, because those
  that it writes have no name yet;
- writes of its timeline get times after the one that it closes (``closing``). Memory is enough for
  this: a process that dies publishes nothing of the tick;
- objects come and go, and the tick is fitted to them before it lands;
- statements that need the state after the tick wait for it (``wait``), without the lock.

Landing. A tick closes T, starting from a *state*. Objects that come while it computes
(``joining``) are complete before U, as all that it starts from; those that go take their
arrangements with them. What they make of the state is the tick's *basis*, on which it lands. To
land, ``added`` must be what [U, T] brings to every arrangement of the basis (P3):

- of arrangements that were there when it began, what the tick has computed: what it starts from is
  immutable, and what a graph keeps by one name is the same in every graph;
- of tables that are new, nothing: writes get times after T;
- of others that are new, what follows from the changes that the tick brings (``refit``), as of a
  view that is filled in the background (``preparation``);
- of those that are gone, nothing is published. An arrangement that went and came again is new.

Only this process knows of a flight: a crash leaves the objects as they are, and the next process
ticks from there.

Cost: of ``refit``, that of the changes in what is new; nothing if nothing came. It is without the
lock, and after ``REFITS`` times objects that come wait for the tick.

Tests: tests/engine/test_flights.py.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reclock.dataflow.graph import collection_of
from reclock.engine.arrangements import Traces, appended, following, layouts_of, write_runs
from reclock.engine.interrupt import Interrupt
from reclock.engine.renewal import Renewal
from reclock.engine.tick_log import Watch
from reclock.errors import Interrupted
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.arrangements import Runs
    from reclock.engine.engine import Engine
    from reclock.engine.renewal import Due
    from reclock.engine.taken import Taken
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

REFITS: Final = 3
"""How often objects may come and go between what a tick has computed and its landing."""


@dataclass(eq=False)
class Flight:
    """A tick under way: it closes ``time``, starting from ``state`` in ``world``."""

    world: World
    state: TimelineState
    time: Timestamp
    due: Due
    taken: Mapping[ObjectId, Taken]
    watch: Watch = field(default_factory=Watch)
    interrupt: Interrupt = field(default_factory=Interrupt)
    """Asks what computes to stop."""
    renewal: Renewal = field(default_factory=Renewal)
    added: Runs = field(default_factory=dict)
    dropped: Counter[ArrangementId] = field(default_factory=Counter)
    """Updates that are not kept, because they are due too late."""
    basis: TimelineState = field(init=False)
    """What it lands on; the holder of the lock changes it."""
    fitted: TimelineState = field(init=False)
    """What ``added`` is computed for."""
    refits: int = 0

    def __post_init__(self) -> None:
        self.basis = self.fitted = self.state

    @property
    def pace(self) -> Pace:
        """What ticks."""
        return self.state.pace

    @property
    def lets_join(self) -> bool:
        """Return whether objects may still come and go before it lands."""
        return self.refits <= REFITS and not self.due.untils

    def fits(self, world: World) -> bool:
        """Return whether a world is the basis, but for later writes."""
        return _is_same(self.basis, world.timelines.get(self.pace))

    def is_untouched(self, world: World) -> bool:
        """Return whether a world is where it started from, but for later writes."""
        return _is_same(self.state, world.timelines.get(self.pace))


def _is_same(state: TimelineState, now: TimelineState | None) -> bool:
    return now is not None and now.arrangements is state.arrangements and now.shape is state.shape


def refit(engine: Engine, flight: Flight, basis: TimelineState) -> None:
    """Make what a tick adds that of its basis; do not hold the lock."""
    flight.refits += 1
    before, now = flight.fitted.arrangements.runs, basis.arrangements.runs
    new = frozenset(name for name, refs in now.items() if refs is not before.get(name))
    added = {name: refs for name, refs in flight.added.items() if name in now and name not in new}
    views = new - {collection_of(table) for table in basis.shape.graph.tables}
    if views:
        added |= _followed(engine, flight, basis, views, added)
    flight.added, flight.fitted = added, basis
    hit("tick.refit.after")


def _followed(
    engine: Engine,
    flight: Flight,
    basis: TimelineState,
    new: frozenset[ArrangementId],
    added: Runs,
) -> Runs:
    """Return what a tick that adds this to all others adds to some new arrangements."""
    lower, upper = basis.upper, flight.time.step()
    layouts, known = layouts_of(basis.shape.graph), basis.arrangements.runs
    runs = {name: appended(known[name], added.get(name, ())) for name in known.keys() - new}
    after = Traces(replace(basis.arrangements, runs=runs, own=upper), layouts, basis.segments)
    updates = engine.follow(
        basis.limited(flight.dropped), new, basis.traces, after,
        lower=lower, upper=upper, stop=flight.interrupt,
    )  # fmt: skip
    descriptions = {name: following(known[name], upper) for name in sorted(updates)}
    stem = f"{basis.stem('refit', flight.time)}-{flight.refits}"
    return write_runs(basis.segments, stem, updates, layouts, descriptions)


class Flights:
    """The ticks under way, by pace; for all threads."""

    def __init__(self, pin: Callable[[World], None], unpin: Callable[[World], None]) -> None:
        self._pin = pin
        self._unpin = unpin
        self._changed = threading.Condition()
        self._under_way: dict[Pace, Flight] = {}

    def add(self, flight: Flight) -> None:
        """Note that a tick has begun, and keep what it reads and writes; hold the lock."""
        self._pin(flight.world)
        with self._changed:
            assert flight.pace not in self._under_way
            self._under_way[flight.pace] = flight

    def end(self, flight: Flight) -> None:
        """Note that a tick has landed, or never will; again is harmless."""
        with self._changed:
            if self._under_way.get(flight.pace) is not flight:
                return
            del self._under_way[flight.pace]
            self._changed.notify_all()
        self._unpin(flight.world)

    def __bool__(self) -> bool:
        """Return whether some tick is."""
        return bool(self._under_way)

    def among(self, paces: Iterable[Pace]) -> set[Pace]:
        """Return those of some paces that a tick is under way of."""
        with self._changed:
            return self._under_way.keys() & set(paces)

    def of(self, pace: Pace) -> Flight | None:
        """Return the tick of a pace that is under way."""
        with self._changed:
            return self._under_way.get(pace)

    def joined(self, state: TimelineState) -> None:
        """Have a tick under way land on a state in which objects have come and gone (``joining``).

        Hold the lock.
        """
        flight = self.of(state.pace)
        if flight is not None:
            flight.basis = state

    def closing(self, pace: Pace) -> Timestamp | None:
        """Return the time that a tick under way closes."""
        found = self.of(pace)
        return None if found is None else found.time

    def wait(self, paces: Iterable[Pace], seconds: float | None = None) -> bool:
        """Wait until no tick of some paces is under way, or for so long; do not hold the lock."""
        wanted = set(paces)
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way.keys() & wanted, seconds)

    def cancel(self) -> None:
        """Have no tick land that is under way, and what computes for them stop."""
        with self._changed:
            flights = tuple(self._under_way.values())
        for flight in flights:
            flight.interrupt.set(Interrupted("the database is closed", code="57P01"))
