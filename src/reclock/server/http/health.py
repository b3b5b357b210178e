"""``/healthz``: the process lives. ``/readyz``: everything that should move does, or why not.

Ready is: every timeline ticks, every source runs or is complete, every sink runs. A source that
is behind what there is runs; one of which nothing was bound yet does not. Reasons name what is
wrong and its SQLSTATE; the text of an error may quote data, so it is for those who have logged in.

Tests: tests/server/http/test_health.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.errors import Error
    from reclock.session.database import Database

Reason = dict[str, Any]


def readiness(db: Database, *, told: bool) -> tuple[bool, list[Reason]]:
    """Return whether all is well, and what is not; with ``told`` in the words of its error."""
    found = list(_wrong(db, told=told))
    return not found, found


def _wrong(db: Database, *, told: bool) -> Iterator[Reason]:
    if (failure := db.failure) is not None:
        yield _reason("process", "reclock", "failed", failure, told=told)
    facts = db.facts
    for timeline in facts.timelines():
        if timeline.failure is not None:
            yield _reason("timeline", timeline.name, "failing", timeline.failure, told=told)
        elif facts.is_late(timeline):
            yield _reason("timeline", timeline.name, "late", None, told=told)
    for source in facts.sources():
        waits = source.state == "loading" and not source.is_loaded
        if waits or source.state in {"starting", "stalled", "failed"}:
            yield _reason("source", source.name, source.state, source.why, told=told)
    for sink in facts.sinks():
        if sink.state != "running":
            yield _reason("sink", sink.name, sink.state, sink.why, told=told)


def _reason(kind: str, name: str, state: str, error: Error | None, *, told: bool) -> Reason:
    made: Reason = {"kind": kind, "name": name, "state": state}
    if error is not None:
        made["code"] = error.code
        if told:
            made |= {"message": error.message, "detail": error.detail, "hint": error.hint}
    return made
