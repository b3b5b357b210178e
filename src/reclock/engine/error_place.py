"""The place of an error over rows, for the search for such a row (``witness``)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.errors import ExpressionFailed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pyarrow as pa

    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Kept:
    """Among the errors of an object that is kept, at a time."""

    item: ObjectId
    timestamp: Timestamp


@dataclass(frozen=True, slots=True)
class Asked:
    """In a query at a time: its plan, and that plan with the rows of system relations."""

    plan: QueryPlan
    shown: QueryPlan
    timestamp: Timestamp


Place = Kept | Asked


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """Let what fails in the block say that it was there."""
    try:
        yield
    except ExpressionFailed as error:
        error.place = place
        raise


def placed_batches(
    batches: Generator[pa.RecordBatch, None, None], place: Place
) -> Generator[pa.RecordBatch, None, None]:
    """Yield batches that may fail while they are taken, as ``placed``."""
    with placed(place):
        yield from batches
