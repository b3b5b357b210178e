"""``/healthz``: the process lives. ``/readyz``: everything that should move does, or why not.

Ready is: every timeline ticks, every source runs or is complete, every sink runs. A source that
is behind what there is runs, and one that waits for more of a time that it brings; one of which
nothing was bound yet does not. Reasons name what is wrong and its SQLSTATE; who has logged in gets
the hint, too. What else an error says may quote data, so it is for superusers.

Tests: tests/server/http/test_health.py.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.errors import Error
    from reclock.session.database import Database
    from reclock.session.facts import Moving

Reason = dict[str, Any]


class To(IntEnum):
    """Who is told."""

    STRANGER = 0
    ROLE = 1
    SUPERUSER = 2


def readiness(db: Database, to: To, moving: Moving | None = None) -> tuple[bool, list[Reason]]:
    """Return whether everything moves, and what does not; ``moving`` is what was just looked at."""
    found = list(_wrong(db, to, moving or db.facts.moving()))
    return not found, found


def _wrong(db: Database, to: To, moving: Moving) -> Iterator[Reason]:
    if (failure := db.failure) is not None:
        yield _reason("process", "reclock", "failed", failure, to)
    for timeline in moving.timelines:
        if timeline.failure is not None:
            yield _reason("timeline", timeline.name, "failing", timeline.failure, to)
        elif db.facts.is_late(timeline):
            yield _reason("timeline", timeline.name, "late", None, to)
    for source in moving.sources:
        waits = source.state == "loading" and not source.is_loaded
        if waits or source.state in {"starting", "stalled", "failed"}:
            yield _reason("source", source.name, source.state, source.why, to, said=source.said)
    for sink in moving.sinks:
        if sink.state != "running":
            yield _reason("sink", sink.name, sink.state, sink.why, to)


def _reason(
    kind: str, name: str, state: str, error: Error | None, to: To, *, said: str | None = None
) -> Reason:
    made: Reason = {"kind": kind, "name": name, "state": state}
    if error is not None:
        made |= told(error, to)
    elif said is not None and to is To.SUPERUSER:
        made["detail"] = said
    return made


def told(error: Error, to: To) -> Reason:
    """Return the parts of an error that somebody may see."""
    made: Reason = {"code": error.code}
    if to >= To.ROLE:
        made["hint"] = error.hint
    if to is To.SUPERUSER:
        made |= {"message": error.message, "detail": error.detail}
    return made
