"""The status of a source, as ``reclock.source_status`` and progress bars show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reclock.connectors.kafka.consistent import TRANSACTION
from reclock.engine.dead_letters import skipped
from reclock.ingest.condition import condition_of
from reclock.ingest.postgres.intake import PostgresIntake
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from reclock.catalog.item import Source
    from reclock.engine.world import World
    from reclock.ingest.intakes import Intakes
    from reclock.time.antichain import Antichain


@dataclass(frozen=True)
class Status:
    """The columns of ``reclock.source_status``."""

    state: str
    rows: int = 0
    bytes: int = 0
    errors: int = 0
    skipped: int = 0
    upstream: int | None = None
    bound: int | None = None
    lag_ms: int | None = None
    detail: str | None = None
    lag_bytes: int | None = None


def status_of(intakes: Intakes, world: World, source: Source, now_ms: int) -> Status:
    """Return how a source is doing."""
    state = world.of(source)
    remap = state.bindings[source.id].remap
    bound = _sum(remap.latest) if remap.bindings else None
    left_out = _skipped(world, source)
    intake = intakes.get(source.id)
    if intake is None:
        end = intakes.ending(state, source)
        if end.state == "complete":
            return Status("complete", skipped=left_out, upstream=bound, bound=bound, lag_ms=0)
        return Status("failed", skipped=left_out, bound=bound, detail=end.said)
    with intake.room:
        counts, upstream = intake.counts, intake.upstream
        found = condition_of(intake, remap, now_ms)
    said, lag_bytes = found.said, None
    if isinstance(intake, PostgresIntake):
        said, lag_bytes = said or intake.progress, intake.lag_bytes
    return Status(
        found.state,
        counts.rows,
        counts.bytes,
        counts.errors,
        left_out,
        None if upstream is None else _sum(upstream),
        bound,
        None if found.complete_ms is None else max(0, now_ms - found.complete_ms),
        said,
        lag_bytes,
    )


def _skipped(world: World, source: Source) -> int:
    """Return how many records a source has skipped, up to the last complete time."""
    state = world.of(source)
    last = state.upper.back()
    if not source.keeps_letters or state.frontier.less_equal(last):
        return 0
    return skipped(state, source.id, last)


def _sum(frontier: Antichain[Any]) -> int:
    return sum(n for part, n in offsets_of(frontier).items() if part != TRANSACTION)
