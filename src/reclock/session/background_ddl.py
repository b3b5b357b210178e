"""Statements that add an object: they prepare its state first, then take their turn.

The prepared state (``preparation``) may no longer fit when the statement's turn comes, because
objects came or went meanwhile: then it is prepared again, and after some attempts under the lock.
If much has come that it has not followed, it goes on following, while ticks of the pace pause, and
takes another turn.

Tests: tests/engine/test_prepare.py, tests/session/test_read_then_write.py.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.catalog.item import MaterializedView
from reclock.engine import multi_pace as joint
from reclock.engine.arrangements import FIRST
from reclock.engine.detached import apart
from reclock.engine.joining import MUCH, waits
from reclock.engine.preparation import Prepared
from reclock.engine.tick import tick
from reclock.failpoints import hit
from reclock.time.pace import is_joint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.engine.core import Core
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.time.pace import Pace

T = TypeVar("T")

ATTEMPTS: Final = 3
"""How often something is prepared before it is filled under the lock."""

ROUNDS: Final = 5
"""How often much has come when it is its turn, before that is followed under the lock."""


def beside(
    context: Context,
    make: Callable[[World], Item | None],
    finish: Callable[[World, Item, Prepared | None], T],
    *,
    transient: bool = False,
    changed: Callable[[Catalog, Item], Catalog] | None = None,
) -> T | None:
    """Add an object: ``make`` defines it, ``finish`` publishes it under the lock.

    ``make`` is called for the world as it is, before and under the lock; None is nothing to do.
    ``changed`` gives the catalog with the object, if more of it changes.
    """
    core, interrupt = context.core, context.session.interrupt

    def paces(world: World) -> set[Pace]:
        made = [*filter(None, [make(world)])]
        return world.paces(made) if transient else waits(core, world, made)

    for attempt in range(ATTEMPTS):
        with prepared(core, make, interrupt, transient=transient, changed=changed) as ready:
            for left in reversed(range(ROUNDS)):
                with context.writing(paces) as world:
                    item = make(world)
                    if item is None:
                        return None
                    fits = ready is not None and ready.fits(world, item)
                    late = ready is not None and fits and ready.rows_behind(world) > MUCH
                    if not (late and left):
                        if ready is None or fits or attempt == ATTEMPTS - 1:
                            return finish(world, item, ready if fits else None)
                        break
                assert ready is not None
                ready.pause()
                ready.catch_up()
    raise AssertionError


@contextmanager
def prepared(
    core: Core,
    make: Callable[[World], Item | None],
    interrupt: Interrupt,
    *,
    transient: bool = False,
    changed: Callable[[Catalog, Item], Catalog] | None = None,
) -> Iterator[Prepared | None]:
    """Fill what an object needs without the lock; None if that is nothing, or not possible."""
    with ExitStack() as stack:
        ready = _begun(core, make, interrupt, stack, transient=transient, changed=changed)
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
    changed: Callable[[Catalog, Item], Catalog] | None,
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
        ready = Prepared(core, world, pace, item, interrupt, transient=transient, changed=changed)
        stack.callback(ready.close)
        if not ready.new:
            return None
        return ready if ready.holds() else None
