"""The status of a source: one value, for ``reclock.source_status`` and for progress bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reclock.connectors.kafka.consistent import TRANSACTION
from reclock.dataflow.error_rows import parted
from reclock.dataflow.graph import errors_of
from reclock.engine.dead_letters import skipped
from reclock.ingest.cdcv2_intake import StatedIntake
from reclock.ingest.connect import failed_text
from reclock.ingest.postgres.intake import PostgresIntake
from reclock.ingest.source_clocked import OwnIntake
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from reclock.catalog.item import Source
    from reclock.engine.world import World
    from reclock.errors import Error
    from reclock.ingest.intake import Intake
    from reclock.ingest.intakes import Intakes
    from reclock.remap.trace import Remap
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
    remap = world.of(source).bindings[source.id].remap
    bound = _sum(remap.latest) if remap.bindings else None
    left_out = _skipped(world, source)
    intake = intakes.get(source.id)
    if intake is None:
        reason = _failure(world, source)
        if remap.latest.is_closed or (source.using and reason is None):
            return Status("complete", skipped=left_out, upstream=bound, bound=bound, lag_ms=0)
        detail = reason or "reclock.errors has the reason; drop the source and create it again"
        return Status("failed", skipped=left_out, bound=bound, detail=detail)
    with intake.room:
        counts = intake.counts
        upstream, complete = intake.upstream, intake.complete_ms
        state, why = _state(intake, remap)
    said: str | None = None
    if why is not None:
        said = f"{why.message}: {why.detail}" if why.detail else why.message
    if isinstance(intake, OwnIntake):
        state, said = _own_state(intake, now_ms, state, said)
        complete = intake.last_ms(complete)
    lag_bytes = None
    if isinstance(intake, PostgresIntake):
        said, lag_bytes = said or intake.progress, intake.lag_bytes
    return Status(
        state,
        counts.rows,
        counts.bytes,
        counts.errors,
        left_out,
        None if upstream is None else _sum(upstream),
        bound,
        None if complete is None else max(0, now_ms - complete),
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


def _failure(world: World, source: Source) -> str | None:
    """Return what a source failed of, if that is its last; what it could not decode is not."""
    state, name = world.of(source), errors_of(source.id)
    keying = state.shape.graph.arrangements[name].keying
    for batch in state.traces[name].snapshot(state.upper.back()):
        for text in keying.columns(batch)[1].to_pylist():
            if text.startswith((failed_text(source.name, ""), f'source "{source.name}" ')):
                message, detail, _ = parted(text)
                return f"{message}: {detail}" if detail else message
    return None


def _own_state(
    intake: OwnIntake, now_ms: int, state: str, detail: str | None
) -> tuple[str, str | None]:
    """Return how a source does that brings its times: it may wait for more of them."""
    if detail is not None or intake.upstream is None:
        return state, detail
    full = intake.is_stuck
    if intake.is_behind and not full:
        return "loading", intake.skew(now_ms)
    waits = intake.waits(now_ms)
    unchecked = intake.unchecked() if isinstance(intake, StatedIntake) else None
    said = [text for text in (waits, intake.skew(now_ms), unchecked) if text is not None]
    found = "stalled" if full else "waiting" if waits else "running"
    return found, "; ".join(said) or None


def _state(intake: Intake, remap: Remap[Any]) -> tuple[str, Error | None]:
    if intake.failure is not None:
        return "failed", intake.failure
    if intake.stall is not None:
        return "stalled", intake.stall
    if intake.upstream is None:
        return "starting", None
    return ("running" if intake.upstream == remap.latest else "loading"), None


def _sum(frontier: Antichain[Any]) -> int:
    return sum(n for part, n in offsets_of(frontier).items() if part != TRANSACTION)
