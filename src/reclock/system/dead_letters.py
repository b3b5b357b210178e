"""``reclock.dead_letters``: the records that sources have skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Source
from reclock.catalog.system_relation import Described, system_relation
from reclock.engine.dead_letters import letters_at
from reclock.sql.types import BIGINT, BYTEA, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    for source in moment.world.catalog.of_kind(Source):
        state = moment.world.of(source)
        if not source.keeps_letters or source.id not in state.sinces:
            continue
        as_of = moment.as_of(state, state.sinces[source.id].element())
        if state.frontier.less_equal(as_of):
            continue  # nothing is complete yet
        for row in letters_at(state, source.id, as_of).to_pylist():
            yield source.name, *row.values()


DEAD_LETTERS = system_relation(
    "dead_letters",
    "Records that do not decode and were skipped (`on_error = 'skip'`), as they were read: of each "
    "source the last 10,000, of up to 16 MiB.",
    (
        Described("source", TEXT, "the source"),
        Described("number", BIGINT, "1, 2, 3, … of all that the source has ever skipped"),
        Described("timestamp", BIGINT, "when it was skipped: the time that it is bound to"),
        Described("partition", TEXT, "its partition, by its number, or its file, by its name"),
        Described("offset", BIGINT, "its offset, or where it begins in the file"),
        Described(
            "key",
            BYTEA,
            "its key, as it was read, up to 1 MiB; NULL: it has none, or it could not be read "
            "again",
            nullable=True,
        ),
        Described(
            "value",
            BYTEA,
            "its value, as it was read, up to 1 MiB; NULL: it has none, or it could not be read "
            "again, or it is a row of a Parquet file",
            nullable=True,
        ),
        Described("code", TEXT, "the SQLSTATE"),
        Described("reason", TEXT, "why it does not decode"),
    ),
    _rows,
    private=True,
)
