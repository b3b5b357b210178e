"""``reclock.sink_status``: how sinks are doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Sink
from reclock.catalog.system_relation import Described, system_relation
from reclock.engine.error_place import Kept
from reclock.engine.witness import SEARCHED, row_of
from reclock.errors import ExpressionFailed
from reclock.export.exporters import Exporters
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment
    from reclock.errors import Error


def _rows(moment: Moment) -> Iterator[Row]:
    exporters = moment.core.exporters
    assert isinstance(exporters, Exporters)
    for sink in moment.world.catalog.of_kind(Sink):
        exporter = exporters[sink.id]
        upper = moment.world.of(sink).upper
        frontier = exporter.frontier
        state, why = exporter.condition
        detail = exporter.fault or exporter.waits_for if why is None else _text(moment, why)
        yield (
            sink.name,
            state,
            None if frontier is None else int(frontier),
            exporter.written.messages,
            exporter.written.bytes,
            exporter.in_flight,
            None if exporter.reached is None else max(0, upper - exporter.reached),
            detail,
            exporter.retries,
            None if exporter.last_error is None else _text(moment, exporter.last_error),
        )


def _text(moment: Moment, error: Error) -> str:
    row = None
    if isinstance(error, ExpressionFailed) and isinstance(error.place, Kept):
        told = error.code, error.message
        row = row_of(moment.core, moment.world, moment.role, error.place, told, most=SEARCHED)
    detail = "; ".join(filter(None, (error.detail, row)))
    text = f"{error.message}: {detail}" if detail else error.message
    return f"{text}; hint: {error.hint}" if error.hint else text


SINK_STATUS = system_relation(
    "sink_status",
    "How each sink is doing, now.",
    (
        Described("sink", TEXT, "the sink"),
        Described(
            "state",
            TEXT,
            "`starting`, `recovering` (what another database wrote is to be gone on with), "
            "`running`, `stalled` (cannot be written, tried again), "
            "`failed` (for good)",
        ),
        Described(
            "frontier", BIGINT, "times before it are committed; NULL: not known", nullable=True
        ),
        Described("messages", BIGINT, "messages committed by this process"),
        Described("bytes", BIGINT, "the size of their values"),
        Described("in_flight", BIGINT, "messages of the current transaction"),
        Described(
            "lag_ms",
            BIGINT,
            "for how long changes wait to be written; NULL: not known",
            nullable=True,
        ),
        Described("detail", TEXT, "why it is in that state; NULL: nothing to say", nullable=True),
        Described("retries", BIGINT, "how often this process had to try again"),
        Described(
            "last_error",
            TEXT,
            "what went wrong last, whether or not it is over; NULL: nothing did",
            nullable=True,
        ),
    ),
    _rows,
)
