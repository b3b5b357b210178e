"""``reclock.errors``: what is wrong now, in views and sources, and in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Source
from reclock.catalog.system_relation import Described, system_relation
from reclock.dataflow.error_rows import parted
from reclock.engine.error_place import Kept
from reclock.engine.view_errors import view_errors
from reclock.engine.witness import SEARCHED, row_of
from reclock.ingest.cdcv2_intake import StatedIntake
from reclock.sql.types import BIGINT, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


_NAMED: Final = 5
"""For how many errors of one read a row is looked up that has it."""

_SHOWN: Final = 100
"""How many records of a source are shown that wait for their time."""


def _rows(moment: Moment) -> Iterator[Row]:
    yield from _of_views(moment)
    yield from _of_sources(moment)
    yield from _of_the_loop(moment)


def _of_views(moment: Moment) -> Iterator[Row]:
    named = 0
    for state in moment.world.timelines.values():
        for view in state.shape.graph.views.keys() & state.sinces.keys():
            as_of = moment.as_of(state, state.sinces[view].element())
            if state.frontier.less_equal(as_of):
                continue  # nothing is complete yet
            name = moment.world.items[view].name
            for (code, text), count in sorted(view_errors(state, view, as_of).items()):
                message, own, hint = parted(text)
                many = None if count == 1 else f"for {count} rows"
                row = None
                if named < _NAMED:
                    row = row_of(
                        moment.core, moment.world, moment.role, Kept(view, as_of), (code, text),
                        most=SEARCHED,
                    )  # fmt: skip
                    named += row is not None
                detail = "; ".join(filter(None, (own, hint, many, row))) or "for one row"
                yield name, int(as_of), code, message, detail


def _of_sources(moment: Moment) -> Iterator[Row]:
    """Yield the records that do not decode, of times that are not complete yet."""
    for source in moment.world.catalog.of_kind(Source):
        intake = moment.core.intakes.get(source.id)
        if isinstance(intake, StatedIntake):
            detail = "its time is not complete yet"
            for code, message in intake.faults[:_SHOWN]:
                yield source.name, int(intake.upper), code, message, detail


def _of_the_loop(moment: Moment) -> Iterator[Row]:
    loop = moment.core.loop
    for failure in () if loop is None else loop.failures.values():
        yield None, int(failure.timestamp), failure.code, failure.message, failure.detail


ERRORS = system_relation(
    "errors",
    "What is wrong: errors that views and sources hold at the time of the read, and failures of "
    "the background loop.",
    (
        Described("object", TEXT, "the view or source; NULL: the background loop", nullable=True),
        Described("timestamp", BIGINT, "when it was so"),
        Described("code", TEXT, "the SQLSTATE"),
        Described("message", TEXT, "what is wrong"),
        Described("detail", TEXT, "more about it; NULL: there is no more", nullable=True),
    ),
    _rows,
    private=True,
)
