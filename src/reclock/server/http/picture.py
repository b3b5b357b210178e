"""The data of the console: the state of everything, the graph of objects, and one object.

Names, states, frontiers and counts are for everybody who has logged in, as the system relations
that have them are. The text of an error may quote data: only superusers get it; others get its code
and hint. SQL of definitions and rows come by ``/api/sql``, with the rights of that.

Tests: tests/server/http/test_picture.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import reclock
from reclock.server.http.health import To, readiness
from reclock.server.http.health import told as told_of
from reclock.server.http.trouble import trouble

if TYPE_CHECKING:
    from reclock.server.http.history import History
    from reclock.session.database import Database
    from reclock.session.source_facts import SourceFacts

Json = dict[str, Any]

LAST: Final = 4
"""So many samples are in an overview: who asks at least every fifteen seconds misses none."""

MOMENT_MS: Final = 10_000
"""What came since the last ticks is no backlog."""


def overview(db: Database, history: History, *, told: bool) -> Json:
    """Return how everything does, with the last samples, so that a page need not ask for them."""
    facts, meters = db.facts, db.meters
    to = To.SUPERUSER if told else To.ROLE
    moving = facts.moving()
    _, reasons = readiness(db, to, moving)
    reasons += trouble(db, to, {reason["name"] for reason in reasons})
    total = meters.phases["total"].now()
    done, failed = meters.merges()
    disk = facts.disk()
    return {
        "version": reclock.__version__,
        "now": db.now_ms,
        "ready": not reasons,
        "reasons": reasons,
        "interval_ms": db.interval_ms,
        "timelines": [
            {"name": x.name, "upper": x.upper, "lag_ms": x.lag_ms, "failing": x.failure is not None}
            for x in moving.timelines
        ],
        "sources": [
            {
                "name": x.name, "state": _state(x), "records": x.records, "bytes": x.bytes,
                "errors": x.errors, "lag_records": x.lag_records, "lag_bytes": x.lag_bytes,
                "lag_ms": x.lag_ms, "bindings": x.bindings, "error": _error(x.why, to),
                "said": x.said if told else None, "partitions": x.partitions, "log": x.is_log,
            }
            for x in moving.sources
        ],
        "sinks": [
            {
                "name": x.name, "state": x.state, "frontier": x.frontier, "messages": x.messages,
                "bytes": x.bytes, "transactions": x.transactions, "retries": x.retries,
                "in_flight": x.in_flight, "lag_ms": x.lag_ms, "error": _error(x.why, to),
                "topic": x.topic, "consistency": x.consistency, "recent": x.recent,
            }
            for x in moving.sinks
        ],
        "objects": [
            {
                "name": x.name, "kind": x.kind, "since": x.since, "upper": x.upper,
                "lag_ms": x.lag_ms, "changed": x.changed,
            }
            for x in facts.objects()
        ],
        "sizes": _sizes(db),
        "ticks": {"count": sum(total.buckets), "seconds": total.total},
        "merges": {"done": done, "failed": failed, "running": db.merging},
        "expirations": facts.expirations(),
        "disk": None if disk is None else {"free": disk.free, "size": disk.size},
        "spark_ui": facts.spark_ui(),
        "samples": history.last(LAST),
    }  # fmt: skip


def _state(source: SourceFacts) -> str:
    """Return what people call the state: a source that is a moment behind runs."""
    behind = source.state == "loading" and source.lag_ms is not None
    return "running" if behind and (source.lag_ms or 0) <= MOMENT_MS else source.state


def pipeline(db: Database) -> Json:
    """Return the graph: every object, and what it reads."""
    return {"objects": db.facts.graph()}


def inside(db: Database, name: str) -> Json | None:
    """Return the operators of a view, their state and what they took; None: there is no such."""
    found = db.facts.operators(name)
    return None if found is None else {"name": name, **found}


def _sizes(db: Database) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for size in db.facts.sizes():
        known = found.setdefault(size.object, {"records": 0, "bytes": 0, "runs": 0})
        known["records"] += size.records
        known["bytes"] += size.bytes
        known["runs"] += size.runs
    return found


def _error(error: reclock.Error | None, to: To) -> Json | None:
    return None if error is None else told_of(error, to)
