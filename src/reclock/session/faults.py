"""What holds errors in the place of rows, and so cannot be read: views, indexes and sources.

Definition. An object is at fault if it holds an error at the last complete time
(``engine.view_errors``). Of its errors the first that is met is told, and how many there are,
counted up to ``MOST``; ``reclock.errors`` has all.

``look`` reads the errors of those objects whose runs of errors have changed since the last look:
of nothing while nothing changes, and most have none at all. ``last`` gives what was found then, and
reads nothing. Neither waits for a tick.

Tests: tests/session/test_faults.py.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.arrangement.layout import diff_of
from reclock.dataflow.error_rows import failure
from reclock.dataflow.graph import errors_of
from reclock.errors import Error

if TYPE_CHECKING:
    from reclock.arrangement.run import RunRef
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.system import System

MOST: Final = 10_000


class Fault(NamedTuple):
    """What is wrong with an object that cannot be read."""

    name: str
    kind: str
    error: Error
    errors: int
    """How many it holds; ``MOST`` and more are not told apart."""


class _Found(NamedTuple):
    runs: tuple[RunRef, ...]
    first: tuple[str, str] | None
    """The code and the text of an error; None: its errors have gone."""
    errors: int


class Faults:
    """The objects of one database that hold errors."""

    def __init__(self, core: System) -> None:
        self._core = core
        self._known: dict[ObjectId, _Found] = {}

    def last(self) -> list[Fault]:
        """Return what the last look has found."""
        items, found = self._core.world.catalog.items, []
        for item, known in tuple(self._known.items()):
            if known.first is not None and item in items:
                name, kind, many = items[item].name, items[item].kind, known.errors
                error = failure(*known.first, f'"{name}" holds {_count(many)}')
                found.append(Fault(name, kind, error, many))
        return sorted(found, key=lambda fault: fault.name)

    def look(self) -> list[Fault]:
        """Look again."""
        world = self._core.pinned()
        if world is not None:  # else what is there is not known at the moment
            try:
                self._known = self._seen(world)
            finally:
                self._core.unpin(world)
        return self.last()

    def _seen(self, world: World) -> dict[ObjectId, _Found]:
        found = {}
        for state in world.timelines.values():
            for item in state.shape.graph.views.keys() & state.sinces.keys():
                runs = state.arrangements.runs.get(errors_of(item), ())
                filled = tuple(run for run in runs if run.rows)
                if filled and item in world.catalog.items:
                    known = self._known.get(item)
                    if known is None or known.runs != filled:
                        with suppress(Error):  # it is looked at again
                            known = _Found(filled, *_errors(state, item))
                    if known is not None:
                        found[item] = known
        return found


def _errors(state: TimelineState, item: ObjectId) -> tuple[tuple[str, str] | None, int]:
    """Return an error that an object holds, and how many there are, up to ``MOST``."""
    trace, as_of = state.traces[errors_of(item)], state.upper.back()
    if not trace.description.definite_at(as_of):
        return None, 0
    keying = state.shape.graph.arrangements[errors_of(item)].keying
    first, errors = None, 0
    for batch in trace.snapshot(as_of):
        if batch.num_rows and first is None:
            codes, texts = keying.columns(batch.slice(0, 1))
            first = codes[0].as_py(), texts[0].as_py()
        errors += int(diff_of(batch).sum())
        if errors >= MOST:
            break
    return first, min(errors, MOST)


def _count(errors: int) -> str:
    if errors >= MOST:
        return f"{MOST:,} errors or more"
    return "1 error" if errors == 1 else f"{errors:,} errors"
