"""How a source is: one word and why, the same for SQL, metrics, health and the console.

Definition. A source that is read is, in this order::

    failed      for good; the next tick seals it
    stalled     what it reads does not answer, or no more fits into memory: tried again
    starting    nobody has asked yet where it ends
    loading     there is more than was read
    waiting     it brings its times, and something is lacking before the next can be complete
    running     else

One that is read no more is ``complete``, or ``failed`` with what its errors say of it: that is read
once (``ending_of``), when the source ends or the database is opened.

Looking takes the lock of the intake (``room``), which a tick holds while it takes what was read.
``Glimpses`` never waits for it: if it is taken, what was seen last counts.

Tests: tests/ingest/test_condition.py; every test of a state compares both ways to ask.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.dataflow.error_rows import parted
from reclock.dataflow.graph import errors_of
from reclock.errors import Error, SourceUnavailable
from reclock.ingest.cdcv2_intake import StatedIntake
from reclock.ingest.connect import failed_text
from reclock.ingest.source_clocked import OwnIntake

if TYPE_CHECKING:
    from reclock.catalog.item import Source
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.intake import Intake
    from reclock.remap.trace import Remap


_OF_A_SOURCE: Final = re.compile(r'source "[^"]*"[: ]')
"""How a failure begins, under whichever name; what does not decode has a comma there."""


class Condition(NamedTuple):
    """How a source is."""

    state: str
    why: Error | None = None
    """The error that is why, if one is."""
    said: str | None = None
    """Why, for a person."""
    complete_ms: int | None = None
    """When everything that there was, had a time."""


def condition_of(intake: Intake, remap: Remap[Any], now_ms: int) -> Condition:
    """Return how a source is that is read."""
    with intake.room:
        complete = intake.complete_ms
        if isinstance(intake, OwnIntake):
            complete = intake.last_ms(complete)
        why = intake.failure or intake.stall
        if why is not None:
            state = "stalled" if intake.failure is None else "failed"
            return Condition(state, why, text_of(why), complete)
        if intake.upstream is None:
            return Condition("starting", complete_ms=complete)
        if isinstance(intake, OwnIntake):
            state, said = _own(intake, now_ms)
            why = _no_room(said) if state == "stalled" else None
            return Condition(state, why, said, complete)
        state = "loading" if intake.has_more(remap.latest) else "running"
        return Condition(state, complete_ms=complete)


def _own(intake: OwnIntake, now_ms: int) -> tuple[str, str | None]:
    """Return how a source is that brings its times: it may wait for more of them."""
    full = intake.is_stuck
    if intake.is_behind and not full:
        return "loading", intake.skew(now_ms)
    waits = intake.waits(now_ms)
    unchecked = intake.unchecked() if isinstance(intake, StatedIntake) else None
    said = [text for text in (waits, intake.skew(now_ms), unchecked) if text is not None]
    return "stalled" if full else "waiting" if waits else "running", "; ".join(said) or None


def _no_room(said: str | None) -> Error:
    message = "what waits for its time takes all the memory that it may"
    hint = "have the sender complete the time that is said to lack something"
    return SourceUnavailable(message, code="53200", detail=said, hint=hint)


def ending_of(state: TimelineState, source: Source) -> Condition:
    """Return how a source is that is sealed."""
    remap = state.bindings[source.id].remap
    if remap.latest.is_closed:
        return Condition("complete")
    why = _failure(state, source)
    if why is None and source.using is not None:
        return Condition("complete")
    unknown = "reclock.errors has the reason; drop the source and create it again"
    return Condition("failed", why, unknown if why is None else text_of(why))


def _failure(state: TimelineState, source: Source) -> Error | None:
    """Return what a source failed of, if that is its last; what it could not decode is not."""
    name = errors_of(source.id)
    arrangement = state.shape.graph.arrangements.get(name)
    if arrangement is None:
        return None
    for batch in state.traces[name].snapshot(state.upper.back()):
        codes, texts = (column.to_pylist() for column in arrangement.keying.columns(batch))
        for code, text in zip(codes, texts, strict=True):
            own = text.startswith((failed_text(source.name, ""), f'source "{source.name}" '))
            if own or _OF_A_SOURCE.match(text):
                message, detail, hint = parted(text)
                return Error(message, code=code, detail=detail, hint=hint)
    return None


def text_of(error: Error) -> str:
    """Return an error in one line, for people."""
    return f"{error.message}: {error.detail}" if error.detail else error.message


class Glimpses:
    """How the sources of a database are, without waiting for a tick."""

    def __init__(self) -> None:
        self._last: dict[ObjectId, Condition] = {}

    def at(self, item: ObjectId, intake: Intake, remap: Remap[Any], now_ms: int) -> Condition:
        """Return how a source is, or, while a tick takes what was read of it, how it was."""
        if intake.room.acquire(blocking=False):
            try:
                self._last[item] = condition_of(intake, remap, now_ms)
            finally:
                intake.room.release()
        return self._last.get(item, Condition("starting"))
