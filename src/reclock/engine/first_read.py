"""Reads of sources that are still loading, and of views over them: they wait, and name the source.

A source can be read from its first readable time on (``first_time``). An earlier read waits for
that, as long as ``statement_timeout`` allows; AS OF an earlier time is refused.

In the background the source is being read by its own thread. A waiting reader asks for a tick as
soon as there is something to bind, rather than at the next deadline. Without a loop, reads run the
ticks that they need: each binds what one tick takes, and closes the next time even if the clock has
not got there, as the tick of a write does. A source that brings nothing then, because it does not
answer or binds on a grid of its own, is an error that says so.

Tests: tests/ingest/test_first.py.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.engine.tick import tick
from reclock.errors import StatementTimeout, Unreadable
from reclock.time.pace import order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.catalog.item import Index, RelationItem
    from reclock.engine.core import Core
    from reclock.engine.first_time import Loading
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.world import World
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

_LOOK_SECONDS: Final = 0.05


def check_loaded(world: World, items: Iterable[RelationItem | Index], time: Timestamp) -> None:
    """Refuse to read at a time before which a source had not bound what was there at first."""
    read = list(items)
    if waits := world.loading(read):
        message = f"timestamp {time} is not readable: {_named(waits)} is still loading"
        hint = "leave AS OF out to wait for it"
        raise Unreadable(message, detail="; ".join(map(str, waits)), hint=hint)
    for item in read:
        kept, since = world.of(item).bounds(item).since, world.bounds(item).since
        if kept.less_equal(time) and not since.less_equal(time):
            message = f'timestamp {time} is not readable: "{item.name}" was still loading then'
            hint = f"the earliest time that can be read is {since.element()}"
            raise Unreadable(message, hint=hint)


def wait_until_loaded(
    core: Core, loading: Sequence[Loading], deadline: float | None, interrupt: Interrupt
) -> None:
    """Let time pass until sources may have got further."""
    if core.loop is None:
        _bind(core, loading)
    else:
        with interrupt.waking(core.wake):
            _wait(core, loading, deadline, interrupt)


def _paces(core: Core, loading: Iterable[Loading]) -> list[Pace]:
    world = core.world
    there = (world.catalog.items.get(some.source) for some in loading)
    return sorted({world.pace(item) for item in there if item is not None}, key=order)


def _bind(core: Core, loading: Sequence[Loading]) -> None:
    """Run the ticks that bind what can be bound now, or say why nothing can."""
    moved = False
    for pace in _paces(core, loading):
        before = core.world[pace].bindings
        after = tick(core, pace, ahead=True).bindings
        moved |= any(
            i in after and after[i].remap is not bound.remap for i, bound in before.items()
        )
    if not moved:
        message = f"{_named(loading)} is still loading"
        hint = "let the clock get there; reclock.source_status says what it waits for"
        raise Unreadable(message, detail=_far(core, loading), hint=hint)


def _wait(
    core: Core, loading: Sequence[Loading], deadline: float | None, interrupt: Interrupt
) -> None:
    """Wait until the loop has bound more of some sources."""
    loop = core.loop
    assert loop is not None
    paces = _paces(core, loading)
    known = {some.source: some.remap for some in loading}

    def moved() -> bool:
        interrupt.check()
        for pace in paces:
            loop.check(pace)
        world = core.world
        return any(
            (item := world.catalog.items.get(source)) is None
            or world.of(item).bindings[source].remap is not remap
            for source, remap in known.items()
        )

    while True:
        for pace in paces:
            if core.intakes.is_ready(pace):
                loop.wake(pace, core.world[pace].upper)
        with core.moved:
            left = _LOOK_SECONDS if deadline is None else deadline - monotonic()
            if core.moved.wait_for(moved, max(0.0, min(_LOOK_SECONDS, left))):
                return
        if left <= 0:
            message = f"{_named(loading)} is still loading what was there when it was created"
            hint = "raise statement_timeout, or wait: reclock.source_status says how far it is"
            raise StatementTimeout(message, detail=_far(core, loading), hint=hint)


def _named(loading: Sequence[Loading]) -> str:
    return f'source "{loading[0].name}"'


def _far(core: Core, loading: Iterable[Loading]) -> str:
    """Say how far sources are, and what keeps them."""
    said = []
    for some in loading:
        intake = core.intakes.get(some.source)
        stall = None if intake is None else intake.stall
        said.append(f"{some}" if stall is None else f"{some}: {stall.message}")
    return "; ".join(said)
