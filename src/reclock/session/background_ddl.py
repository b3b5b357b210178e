"""Statements that add an object: they prepare its state first, then take their turn.

The prepared state (``preparation``) may no longer fit when the statement's turn comes, because
objects came or went meanwhile: then it is prepared again, and after some attempts under the lock.

Tests: tests/engine/test_prepare.py, tests/session/test_read_then_write.py.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.catalog.item import MaterializedView
from reclock.engine import multi_pace as joint
from reclock.engine.arrangements import FIRST
from reclock.engine.detached import apart
from reclock.engine.preparation import Prepared
from reclock.engine.tick import tick
from reclock.failpoints import hit
from reclock.time.pace import is_joint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.catalog.item import Item
    from reclock.engine.core import Core
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.time.pace import Pace

T = TypeVar("T")

ATTEMPTS: Final = 3
"""How often something is prepared before it is filled under the lock."""


def beside(
    context: Context,
    make: Callable[[World], Item | None],
    finish: Callable[[World, Item, Prepared | None], T],
    *,
    transient: bool = False,
) -> T | None:
    """Add an object: ``make`` defines it, ``finish`` publishes it under the lock.

    ``make`` is called for the world as it is, before and under the lock; None is nothing to do.
    """
    interrupt = context.session.interrupt
    for attempt in range(ATTEMPTS):
        with (
            prepared(context.core, make, interrupt, transient=transient) as ready,
            context.writing(lambda world: world.paces(filter(None, [make(world)]))) as world,
        ):
            item = make(world)
            if item is None:
                return None
            fits = ready is not None and ready.fits(world, item)
            if ready is None or fits or attempt == ATTEMPTS - 1:
                return finish(world, item, ready if fits else None)
    raise AssertionError


@contextmanager
def prepared(
    core: Core,
    make: Callable[[World], Item | None],
    interrupt: Interrupt,
    *,
    transient: bool = False,
) -> Iterator[Prepared | None]:
    """Fill what an object needs without the lock; None if that is nothing, or not possible."""
    with ExitStack() as stack:
        ready = _begun(core, make, interrupt, stack, transient=transient)
        if ready is not None:
            stack.enter_context(core.unnamed())
            ready.fill()
            ready.catch_up()
            hit("ddl.prepare.after")
        yield ready


def _waits(world: World, pace: Pace) -> bool:
    """Return whether objects of a pace cannot be filled yet: there is no complete time."""
    state = world.timelines.get(pace)
    if is_joint(pace) and (state is None or not state.arrangements.runs):
        return not joint.has_begun(world, pace)
    return state is None or state.upper <= FIRST


def _begun(
    core: Core,
    make: Callable[[World], Item | None],
    interrupt: Interrupt,
    stack: ExitStack,
    *,
    transient: bool,
) -> Prepared | None:
    """Return what is to be prepared, in a world that is kept while ``stack`` is."""
    with core.reading() as world:
        item = make(world)
        if item is None or item.timeline is None or not item.arranges:
            return None
        pace = world.catalog.pace(item.timeline, item.depends)
    if isinstance(item, MaterializedView) and item.schedule is not None:
        # What was written before the statement is in the first refresh.
        apart(interrupt, lambda _: tick(core, pace))
    with core.reading() as world:
        item = make(world)
        if item is None or item.timeline is None:
            return None
        pace = world.catalog.pace(item.timeline, item.depends)
        if _waits(world, pace):
            return None
        ready = Prepared(core, world, pace, item, interrupt, transient=transient)
        stack.callback(ready.close)
        if not ready.new:
            return None
        return ready if ready.holds() else None
