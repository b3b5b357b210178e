"""A generator: a log whose events are a pure function of their number.

Definition. Events are numbered 0, 1, 2, …; a generator has rows for some of them::

    before(o)            how many events that have rows lie before offset o
    rows(first, last)    the rows of those events, counted among those that have rows

so the events of any offsets ``[a, b)`` are ``rows(before(a), before(b))``: random access,
without looking at any other event. Rows depend on the options, on the number of the event
and on nothing else: not on the range that is asked for, on the machine or on the moment.
They are computed with integers only, because the last bit of a floating-point function is
not the same on every processor.

What a seed means is therefore a durable format: a change of what ``rows`` gives must raise
``VERSION`` and keep the old way for sources that were created with it (P2). The known answers of
tests/connectors/generator/ notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from reclock.sql.types import BIGINT, TEXT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from reclock.sql.types import Type

VERSION: Final = 1
"""Of the algorithm: it is kept with a source, so that it replays for ever as it began."""

LIMIT: Final = 10**13
"""The number of events after which a generator is at its end: all dates still have four digits."""

ARROW: Final[Mapping[Type, pa.DataType]] = {
    BIGINT: pa.int64(),
    TEXT: pa.string(),
    TIMESTAMP: pa.timestamp("us"),
}
"""How the types that generators use lie in batches."""


class Column(NamedTuple):
    """A column of a generator's relation."""

    name: str
    type: Type
    nullable: bool = False


class Rows(NamedTuple):
    """The rows of some events: the offset of each row's event, its values, its diff."""

    offsets: NDArray[np.int64]
    columns: tuple[pa.Array, ...]
    diffs: NDArray[np.int64]


class Generator(Protocol):
    """A relation that is generated; a frozen value that can be pickled."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the relation consists of."""
        ...

    def before(self, offset: int) -> int:
        """Return how many events before ``offset`` have rows."""
        ...

    def rows(self, first: int, last: int) -> Rows:
        """Return the rows of the events ``[first, last)`` of those that have rows."""
        ...


def instants(base: int, step: int, numbers: NDArray[np.int64]) -> pa.Array:
    """Return timestamps: ``base + step × number`` microseconds.

    >>> instants(0, 1_000_000, np.array([2]))[0].as_py().isoformat()
    '1970-01-01T00:00:02'
    """
    return pa.array(base + step * numbers, pa.int64()).cast(ARROW[TIMESTAMP])


def inserted(count: int) -> NDArray[np.int64]:
    """Return the diffs of ``count`` rows that are there for good."""
    return np.ones(count, np.int64)
