"""``reclock.source_transactions``: what sources with a consistency topic wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Source
from reclock.catalog.system_relation import Described, system_relation
from reclock.ingest.cdcv2_intake import StatedIntake
from reclock.ingest.transactions.transactions import Transactions
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    for source in moment.world.catalog.of_kind(Source):
        intake = moment.core.intakes.get(source.id)
        if not isinstance(intake, StatedIntake):
            continue
        with intake.room:
            waiting = intake.statements
            known = [*waiting.known()] if isinstance(waiting, Transactions) else []
        for some in known:
            yield source.name, some.number, some.id, some.state, some.rows, some.counted


SOURCE_TRANSACTIONS = system_relation(
    "source_transactions",
    "The transactions that sources with a consistency topic have read of and not published.",
    (
        Described("source", TEXT, "the source"),
        Described(
            "number", BIGINT, "its number; NULL: nothing is said of it, it has just rows",
            nullable=True,
        ),
        Described("transaction", TEXT, "its id, as the database or the sink wrote it"),
        Described(
            "state",
            TEXT,
            "`unknown` (neither BEGIN nor END was read), `begun`, `ended` (rows are missing), "
            "`complete` (it waits for those before it)",
        ),
        Described("rows", BIGINT, "how many of its rows for this source were read"),
        Described(
            "counted", BIGINT, "how many there are; NULL: not known, or none", nullable=True
        ),
    ),
    _rows,
)  # fmt: skip
