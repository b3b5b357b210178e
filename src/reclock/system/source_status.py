"""``reclock.source_status``: how sources are doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Source
from reclock.catalog.system_relation import Described, system_relation
from reclock.ingest.intakes import Intakes
from reclock.ingest.status import status_of
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    intakes = moment.core.intakes
    assert isinstance(intakes, Intakes)
    for source in moment.world.catalog.of_kind(Source):
        if source.parent is not None:
            continue
        status = status_of(intakes, moment.world, source, moment.now_ms)
        yield (
            source.name, status.state, status.rows, status.bytes, status.errors,
            status.upstream, status.bound, status.lag_ms, status.detail, status.skipped,
            status.lag_bytes,
        )  # fmt: skip


SOURCE_STATUS = system_relation(
    "source_status",
    "How each source is doing, now.",
    (
        Described("source", TEXT, "the source"),
        Described(
            "state",
            TEXT,
            "`starting`, `loading` (behind what there is), `running` (all there was is bound), "
            "`waiting` (for more of a time that the source brings), "
            "`stalled` (not reachable, tried again), `failed` (for good), `complete`",
        ),
        Described("rows", BIGINT, "records read by this process"),
        Described("bytes", BIGINT, "their size, decoded"),
        Described("errors", BIGINT, "how many of them do not decode"),
        Described(
            "upstream", BIGINT, "the sum of all offsets there are; NULL: not known", nullable=True
        ),
        Described(
            "bound", BIGINT, "the sum of all offsets with a time; NULL: none yet", nullable=True
        ),
        Described(
            "lag_ms",
            BIGINT,
            "how long ago all there was, was bound, or the last complete time of a source is that "
            "brings times of the clock; NULL: never",
            nullable=True,
        ),
        Described("detail", TEXT, "why it is in that state; NULL: nothing to say", nullable=True),
        Described(
            "skipped", BIGINT, "records it has ever skipped: `reclock.dead_letters` has the last"
        ),
        Described(
            "lag_bytes",
            BIGINT,
            "how much of a database's log is not bound yet; NULL: another source, or not known",
            nullable=True,
        ),
    ),
    _rows,
    private=True,
)
