"""A subscription: what ``db.subscribe`` gives, to iterate over or to fetch from.

Iterating waits for what comes next, at most ``timeout`` seconds at a time; then it stops, and
can be taken up again later. Without a background loop time is the user's: a subscriber runs
the tick that the clock calls for, and iteration stops when there is nothing more to come
before the clock moves; with a timeout it waits so long for others to tick.

It ends by itself before ``UP TO``; with an error when a view has one, after all times before
it, when what it follows is dropped, or when who reads it may not do so any more; and when it, or
the database, is closed, from any thread. However it ends, its hold is released; while it is open,
everything that was not given yet is held, and no more.

``fetch`` without a limit returns whole times, whatever their size; iterating, and ``fetch`` with a
limit, divide a time and go on with the rest of it.

One thread reads at a time. Memory: one step (``changes``), whatever the reader's pace; with
``fetch`` and no limit the largest time, which may be the snapshot.

Tests: tests/subscribe/test_subscribe.py.
"""

from __future__ import annotations

import threading
from copy import copy
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import finalize

from reclock.change.value import sort_key
from reclock.engine.object_changes import Followed
from reclock.engine.tick import tick
from reclock.engine.update import Update
from reclock.engine.witness import witness
from reclock.errors import ExpressionFailed, UndefinedName
from reclock.sql.as_of import asked
from reclock.subscribe.envelope import Envelope
from reclock.subscribe.notebook import Shown, show
from reclock.subscribe.past import Past
from reclock.subscribe.subscribers import Parked, Pin
from reclock.time.frontier import Bounds, at
from reclock.time.select import AsOf, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from reclock.engine.object_changes import Step
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import HolderId, ObjectId
    from reclock.sql.schema import Schema
    from reclock.subscribe.subscribers import Grip, Subscribers, Waking
    from reclock.subscribe.target import Target
    from reclock.time.timestamp import Timestamp

IDLE: Final = 10.0
"""After so many seconds without a change a subscriber that waits lets its hold follow."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is followed (None: a constant), from when on, and before when it ends.

    ``kept_from`` is set for a query as of a time before its rows are kept.
    """

    item: ObjectId | None
    as_of: Timestamp
    up_to: Timestamp | None = None
    kept_from: Timestamp | None = None


class Subscription:
    """Follows an object or a query; use it as a context manager, or ``close`` it."""

    def __init__(
        self,
        subscribers: Subscribers,
        target: Target,
        span: Span,
        grip: Grip,
        rights: Callable[[World], None],
        *,
        role: str | None,
        timeout: float | None = None,
    ) -> None:
        self._subscribers = subscribers
        self._core = subscribers.core
        self._role = role
        self._target = target
        self._rights = rights
        self._followed = None
        if span.item is not None:
            self._followed = Followed(span.item, tuple(c.type for c in target.schema))
        self.as_of = span.as_of
        """The time of the snapshot; later, if what is followed begins later than was known."""
        self._up_to = span.up_to
        self._kept_from = span.kept_from
        self._grip = grip
        self.timeout = timeout
        self._order = target.order
        statement = target.statement
        self._envelope: Envelope | None = None
        if statement.envelope is not None:
            self._envelope = Envelope(
                statement.envelope.kind, target.key, len(target.schema), unique=target.key_is_unique
            )
        self._next: Timestamp | None = None
        self._pending: Iterator[list[Update]] | None = None
        self._divided = False
        """Whether what was read last is not all of its time."""
        self._ready: list[Update] = []
        self._given = 0
        self._turn = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._complete = span.up_to is not None and span.up_to <= span.as_of
        self._finalizer = finalize(self, grip.lose)
        subscribers.opened(self)

    # What users see.

    @property
    def schema(self) -> Schema:
        """The columns of ``values``: mz_timestamp, [mz_progressed,] mz_diff, columns …."""
        return self._target.output

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of ``values``."""
        return self.schema.names

    @property
    def holder(self) -> HolderId:
        """As whom it holds what it has not given yet."""
        return self._grip.holder

    @property
    def closed(self) -> bool:
        """Whether it has ended, and nothing more will come."""
        return self._closed

    def values(self, update: Update) -> tuple[Any, ...]:
        """Return an update as the row that SQL gives."""
        head: tuple[Any, ...] = (int(update.timestamp),)
        if self._target.statement.progress:
            head += (update.progressed,)
        if update.row is None:
            return head + (None,) * (len(self.schema) - len(head))
        return (*head, update.diff if self._envelope is None else update.state, *update.row)

    def fetch(self, timeout: float | None = 0.0, limit: int | None = None) -> list[Update]:
        """Return what is there: whole times, or at most ``limit`` updates.

        If nothing is, wait for so many seconds (None: for ever) until something is. Nothing
        comes back if nothing came, or if it has ended (``closed``). A time that has begun is
        read to its end, however long that takes. After a ``limit`` has divided a time, the rest
        of it comes next.
        """
        deadline = None if timeout is None else monotonic() + timeout
        try:
            with self._turn:
                return self._take(deadline, limit)
        except Exception:
            self._closed = True
            raise
        finally:
            if self._closed:
                self._finish()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Update:
        """Return the next update; StopIteration if none came in time, or it has ended."""
        found = self.fetch(self.timeout, 1)
        if not found:
            raise StopIteration
        return found[0]

    def check_rights(self) -> None:
        """Refuse, if what is followed is gone, or the role may not read it any more."""
        if self._target.pace is not None:
            with self._core.reading() as world:
                self._there(world)
                self._rights(world)

    def close(self) -> None:
        """End it, from any thread: who waits for it is woken, what it held is released."""
        self._closed = True
        self._wake.set()
        with self._core.moved:
            self._core.moved.notify_all()
        self._finish()

    def _ipython_display_(self) -> None:
        """Show it in a notebook, as it changes, until it ends; it must have no other reader."""
        statement = self._target.statement
        accumulated = statement.snapshot and self._envelope is None
        names = self._target.schema.names if accumulated else self.columns
        show(self, Shown(names, accumulated=accumulated))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Reading.

    def _take(self, deadline: float | None, limit: int | None) -> list[Update]:
        if self._given >= len(self._ready):
            self._ready, self._given = self._chunk(deadline), 0
        if limit is None:
            found = self._ready[self._given :]  # a copy: subscribers share what is decoded
            self._ready, self._given = [], 0
            return self._whole(found)
        end = min(len(self._ready), self._given + limit)
        found = self._ready[self._given : end]
        self._given = end
        return found

    def _whole(self, found: list[Update]) -> list[Update]:
        """Return updates with the rest of their time; none if it is closed before that is read."""
        while self._divided and self._pending is not None:
            if self._closed:
                return []
            found += self._next_of(self._pending)
        return found

    def _chunk(self, deadline: float | None) -> list[Update]:
        """Return the next updates, as many as come at once; none if none came in time."""
        while not self._closed:
            if self._pending is None:
                if self._complete:
                    self._closed = True
                    break
                self._pending = self._work()
            if self._pending is None:
                if not self._wait(deadline):
                    break
                continue
            if chunk := self._next_of(self._pending):
                return chunk
        return []

    def _next_of(self, pending: Iterator[list[Update]]) -> list[Update]:
        """Return the next updates of what can be read now; after the last there is no more."""
        try:
            chunk = next(pending, None)
        except BaseException as error:  # also an interrupt: what was given must not come again
            self._closed = True
            if isinstance(error, ExpressionFailed):
                witness(self._core, self._role, error, None)
            raise
        if chunk is None:
            self._pending = None
        return chunk or []

    def _work(self) -> Iterator[list[Update]] | None:
        """Return what can be read now; None if that is nothing."""
        with self._core.reading() as world:
            if self._target.pace is None:
                self._complete = True
                return self._constant(world)
            followed = self._there(world)
            self._rights(world)
            state = world[self._target.pace]
            if self._next is None:
                self._begin_later(state, followed.item)
                if self._complete or state.upper <= self.as_of:
                    return None
                return _Pinned(self._subscribers, world, self._begin(world, followed))
            end = state.upper if self._up_to is None else state.upper.meet(self._up_to)
            if self._next >= end:
                return None
            step = self._step(state, followed, self._next, end)
            if step.streamed:
                return _Pinned(self._subscribers, world, self._stream(state, followed, step))
        return self._go_on(step)

    def _begin_later(self, state: TimelineState, item: ObjectId) -> None:
        """Move to where a relation begins that waited for its inputs; ``AS OF t`` does not move."""
        since = state.sinces[item]
        if self._kept_from is not None or since.less_equal(self.as_of):
            return
        given = asked(self._target.statement.as_of, self._target.timeline)
        if isinstance(given, AsOf):
            name = self._target.names.get(item, "the query")
            select([Bounds(name, since, state.frontier)], as_of=given)  # refuses it
        self.as_of = since.element()
        self._complete = self._up_to is not None and self._up_to <= self.as_of

    def _step(
        self, state: TimelineState, followed: Followed, lower: Timestamp, upper: Timestamp
    ) -> Step:
        name = followed, state.pace, lower, upper
        steps = self._subscribers.steps
        return steps.get(name, lambda: followed.step(state, lower, upper))

    def _constant(self, world: World) -> Iterator[list[Update]]:
        past = Past(self._core.engine, world, self._target)
        if self._target.statement.snapshot:
            yield self._told(self.as_of, past.snapshot(self.as_of))
        yield self._progress(self.as_of)

    def _begin(self, world: World, followed: Followed) -> Iterator[list[Update]]:
        """Give the snapshot, and for a query of the past the changes until it is kept."""
        assert self._target.pace is not None
        state = world[self._target.pace]
        if self._kept_from is None:
            yield from self._snapshot(followed.snapshot(state, self.as_of))
            yield self._moved_to(self.as_of)
            return
        past = Past(self._core.engine, world, self._target)
        last = self._kept_from
        if self._up_to is not None:
            last = last.meet(self._up_to.back())
        yield from self._snapshot(iter([past.snapshot(self.as_of)]))
        yield self._moved_to(self.as_of)
        for updates in past.changes(self.as_of, last):
            time = updates[0].timestamp
            yield self._told(time, updates)
            yield self._moved_to(time)
        yield self._moved_to(last)

    def _snapshot(self, batches: Iterator[list[Update]]) -> Iterator[list[Update]]:
        given = self._target.statement.snapshot
        whole = self._envelope is not None or bool(self._order)
        if not given and not (self._envelope is not None and self._envelope.needs_snapshot):
            for _ in batches:
                break  # an error of the view at that time is one all the same
            return
        if whole:
            told = self._told(self.as_of, [u for batch in batches for u in batch])
            yield told if given else []
        else:
            self._divided = True
            yield from batches

    def _stream(
        self, state: TimelineState, followed: Followed, step: Step
    ) -> Iterator[list[Update]]:
        """Give the changes of one time that has very many."""
        batches = followed.streamed(state, step.lower)
        if self._envelope is not None or self._order:
            yield self._told(step.lower, [u for batch in batches for u in batch])
        else:
            self._divided = True
            yield from batches
        yield self._moved_to(step.lower)

    def _go_on(self, step: Step) -> Iterator[list[Update]]:
        """Give the changes of whole times."""
        for time, updates in step.groups:
            yield self._told(time, updates)
        if step.upper > step.lower:
            yield self._moved_to(step.upper.back())
        if step.failure is not None:
            failure = copy(step.failure)  # which others share
            failure.place = step.failure.place
            raise failure

    def _told(self, time: Timestamp, updates: list[Update]) -> list[Update]:
        """Return the updates of one time as they are asked for."""
        if self._envelope is not None:
            return self._envelope.apply(time, updates)
        if not self._order:
            return updates
        made = list(updates)
        for order in reversed(self._order):
            keys = [sort_key(_value(update, order.column)) for update in made]
            nulls = [_value(update, order.column) is None for update in made]
            places = sorted(range(len(made)), key=keys.__getitem__, reverse=order.descending)
            places.sort(key=nulls.__getitem__, reverse=order.nulls_first)
            made = [made[place] for place in places]
        return made

    def _moved_to(self, time: Timestamp) -> list[Update]:
        """Note that everything at ``time`` and before was given; tell, if that is asked for."""
        moved = self._next is None or time >= self._next
        self._next = time.step()
        self._divided = False
        if self._kept_from is not None and time >= self._kept_from:
            self._kept_from = None
            self._grip.holds.pop(0).release()  # the inputs are not needed any more
        if self._up_to is not None and self._next >= self._up_to:
            self._complete = True
        self._grip.holds[0].downgrade(at(time))
        return self._progress(time) if moved else []

    def _progress(self, time: Timestamp) -> list[Update]:
        return [Update(time, progressed=True)] if self._target.statement.progress else []

    def _gone(self, world: World) -> bool:
        return self._followed is None or self._followed.item not in world.items

    def _there(self, world: World) -> Followed:
        """Return what is followed, or say that it was dropped."""
        if self._followed is None or self._gone(world):
            gone = [name for item, name in self._target.names.items() if item not in world.items]
            message = f"the subscription has ended: {', '.join(gone)} was dropped"
            raise UndefinedName(message, code="42P01", hint="subscribe to something else")
        return self._followed

    # Waiting.

    def _wait(self, deadline: float | None) -> bool:
        """Wait until there may be something; return False when it is time to stop."""
        core, pace = self._core, self._target.pace
        assert pace is not None
        world, state = core.world, core.world[pace]
        left = None if deadline is None else deadline - monotonic()
        now, interval = core.clock.now_ms(), core.settings.timestamp_interval_ms
        if core.loop is None:
            if state.is_own:
                if tick(core, pace, regular=True).upper > state.upper:
                    return True
            elif state.tick_time(now, interval) is not None:
                tick(core, pace, regular=True)
                return True
            if left is None or left <= 0:
                return False
            with core.moved:
                core.moved.wait_for(
                    lambda: self._closed or core.world is not world, min(left, interval / 1_000)
                )
            return True
        core.loop.check(pace)
        if self._next is None:
            next_tick = None if state.is_own else state.tick_time(now)
            if next_tick is not None and next_tick >= self.as_of:
                core.loop.wake(pace, self.as_of)
        if left is not None and left <= 0:
            return False
        self._wake.clear()
        if not self._closed:
            parked = Parked(self._wake, self._wanted)
            with self._subscribers.parking(parked):
                self._wake.wait(IDLE if left is None else min(left, IDLE))
        return True

    def waking(self, event: Waking, *, progress: bool) -> AbstractContextManager[None]:
        """Have an event told, in the block, when ``fetch`` would give something.

        Without ``progress`` times in which nothing changes are nothing to be told of.
        """
        wanted = self._wanted if progress else self._changed
        return self._subscribers.parking(Parked(event, wanted))

    def _changed(self, world: World) -> bool:
        """Return whether a world has rows to give, or an end."""
        if self._closed or self._target.pace is None or self._next is None:
            return True
        if self._followed is None or self._gone(world):
            return True
        state = world[self._target.pace]
        if state.upper <= self._next:
            return False
        if self._up_to is not None and state.upper >= self._up_to:
            return True
        return self._followed.changed_after(state, self._next)

    def _wanted(self, world: World) -> bool:
        """Return whether a world has something to give."""
        if self._target.pace is None or self._followed is None or self._gone(world):
            return True
        state = world[self._target.pace]
        if self._next is None:
            return state.upper > self.as_of
        if state.upper <= self._next:
            return False
        if self._target.statement.progress:
            return True
        if self._up_to is not None and state.upper >= self._up_to:
            return True
        return self._followed.changed_after(state, self._next)

    # The end.

    def _finish(self) -> None:
        """Let go of everything, unless a reader is active: it does so then."""
        if self._turn.acquire(blocking=False):
            try:
                self._release()
            finally:
                self._turn.release()

    def _release(self) -> None:
        pending, self._pending = self._pending, None
        if isinstance(pending, _Pinned):
            pending.close()
        self._ready, self._given = [], 0
        if self._finalizer.detach() is not None:
            self._grip.release()
            self._subscribers.let_go()


class _Pinned:
    """Work on a world whose segments stay until it is done, closed, or garbage."""

    def __init__(
        self, subscribers: Subscribers, world: World, work: Iterator[list[Update]]
    ) -> None:
        self._pin = Pin(subscribers.core, world)
        self._lost = finalize(self, subscribers.lost.append, self._pin)
        self._work = work

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Update]:
        try:
            return next(self._work)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._lost.detach() is not None:
            self._pin.release()


def _value(update: Update, column: int) -> object:
    assert update.row is not None
    return update.diff if column < 0 else update.row[column]
