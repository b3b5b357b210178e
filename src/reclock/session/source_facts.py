"""How sources do, and what their offsets are bound to: facts of sources (``facts``).

State, reason and lag are those of ``ingest.condition``, as ``reclock.source_status`` has them. The
tables of a database are no sources here: they move with the one that they are of.

Tests: tests/session/test_facts.py, tests/ingest/test_condition.py.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.catalog.item import Source
from reclock.connectors.kafka.consistent import TRANSACTION
from reclock.ingest.condition import Condition
from reclock.ingest.postgres.intake import PostgresIntake
from reclock.time.position import offsets_of
from reclock.time.timestamp import Lsn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.engine.world import World
    from reclock.errors import Error
    from reclock.ids import ObjectId
    from reclock.ingest.condition import Glimpses
    from reclock.ingest.intake import Intake
    from reclock.remap.trace import Remap
    from reclock.session.system import System
    from reclock.time.antichain import Antichain

SOURCE_STATES: Final = (
    "starting", "loading", "running", "waiting", "stalled", "failed", "complete",
)  # fmt: skip


@dataclass(frozen=True)
class SourceFacts:
    """How a source does; times in milliseconds, None is not known."""

    name: str
    state: str
    records: int
    bytes: int
    errors: int
    lag_records: int | None
    lag_ms: int | None
    bindings: int
    is_loaded: bool
    """Whether something of it was ever bound."""
    why: Error | None = None
    said: str | None = None
    """Why it is in its state, for a person; also if no error is why."""
    partitions: tuple[tuple[str, int, int | None], ...] = ()
    """Of each partition: up to where it is bound, and where it ends, if that is known."""
    lag_bytes: int | None = None
    """How much of a database's log has no time yet: its positions are bytes, not records."""
    is_log: bool = False
    """Whether its positions are places in the log of a database, bytes from its beginning."""


class Binding(NamedTuple):
    """The offsets that a source is bound to from a time on."""

    time: int
    offsets: dict[str, int]


def sources_of(core: System, glimpses: Glimpses) -> Iterator[SourceFacts]:
    """Yield how each source does, as far as is known without waiting for a tick."""
    world, now = core.world, core.clock.now_ms()
    for source in world.catalog.of_kind(Source):
        if source.parent is not None:
            continue
        bindings = world.of(source).bindings.get(source.id)
        if bindings is None:
            continue  # it comes or goes
        intake, remap = core.intakes.get(source.id), bindings.remap
        if intake is None:
            end = core.intakes.ended(source.id) or _unread(remap)
            yield _ended(end, source.name, remap)
        else:
            condition = glimpses.at(source.id, intake, remap, now)
            yield _source(condition, intake, source.name, remap, now)


def bindings_of(
    world: World,
) -> Iterator[tuple[ObjectId, str, Callable[[int], list[Binding]]]]:
    """Yield each source, its name, and what gives its bindings after a time."""
    for source in world.catalog.of_kind(Source):
        found = None if source.parent else world.of(source).bindings.get(source.id)
        if found is not None:
            yield source.id, source.name, partial(_bindings_after, found.remap)


def _unread(remap: Remap[Any]) -> Condition:
    """Return how a source is that has no intake, and of whose end nothing is known."""
    if not remap.is_sealed:
        return Condition("starting")  # it comes
    return Condition("complete" if remap.latest.is_closed else "failed")


def _ended(condition: Condition, name: str, remap: Remap[Any]) -> SourceFacts:
    lag = 0 if condition.state == "complete" else None
    bindings = len(remap.bindings)
    return SourceFacts(
        name, condition.state, 0, 0, 0, lag, lag, bindings, bool(bindings), condition.why,
        condition.said, _partitions(remap.latest, None), is_log=_is_log(remap),
    )  # fmt: skip


def _source(
    condition: Condition, intake: Intake, name: str, remap: Remap[Any], now: int
) -> SourceFacts:
    counts, upstream, complete = intake.counts, intake.upstream, condition.complete_ms
    bound = _sum(remap.latest) if remap.bindings else 0
    behind = None if upstream is None else max(0, _sum(upstream) - bound)
    lag = None if complete is None else max(0, now - complete)
    said, size = condition.said, None
    if isinstance(intake, PostgresIntake):
        behind, said, size = None, said or intake.progress, intake.lag_bytes
    return SourceFacts(
        name, condition.state, counts.rows, counts.bytes, counts.errors, behind, lag,
        len(remap.bindings), bool(remap.bindings), condition.why, said,
        _partitions(remap.latest, upstream), size, _is_log(remap),
    )  # fmt: skip


def _is_log(remap: Remap[Any]) -> bool:
    return any(isinstance(position, Lsn) for position in remap.latest)


def _partitions(
    bound: Antichain[Any], upstream: Antichain[Any] | None
) -> tuple[tuple[str, int, int | None], ...]:
    reached = offsets_of(bound)
    ends = {} if upstream is None else offsets_of(upstream)
    names = [part for part in {**reached, **ends} if part != TRANSACTION]
    return tuple((str(part), reached.get(part, 0), ends.get(part)) for part in names)


def _bindings_after(remap: Remap[Any], time: int) -> list[Binding]:
    first = bisect_right(remap.bindings, time, key=attrgetter("time"))
    found = []
    for bound in remap.bindings[first:]:
        offsets = {str(p): n for p, n in offsets_of(bound.frontier).items() if p != TRANSACTION}
        if offsets:
            found.append(Binding(int(bound.time), offsets))
    return found


def _sum(frontier: Antichain[Any]) -> int:
    return sum(n for part, n in offsets_of(frontier).items() if part != TRANSACTION)
