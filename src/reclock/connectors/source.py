"""The protocol of sources: a frontier to bind, and ranges to read.

A source has two halves. On the driver, without Spark::

    probe(bound)   the upstream frontier: everything before it can be read now
    verify()       is it still the source that was probed?

and in whichever process a task runs, a ``Reader``, which travels there by pickling::

    read(ranges)   exactly the records of these ranges, as Arrow batches

The remap decides between the two which positions belong to which time; a source knows
nothing of times. ``read`` yields every record whose position is in a range, once, in order
within a part; positions without a record (gaps) are normal. Batches are bounded, so memory
is, however long the ranges are. Reading the same ranges again yields the same records:
``verify`` after reading and before publishing makes sure of it (P2).

Errors. ``SourceUnavailable``: nothing is lost, try again. ``SourceRegressed`` and its
``PositionsLost``: lasting, what is bound cannot be read again; never wrong data (P9).

Tests: tests/connectors/test_source.py, the same cases for every source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from reclock.remap.batch import Range
    from reclock.time.antichain import Antichain


class Reader(Protocol):
    """The half that runs where the data is decoded."""

    def read(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``ranges``, which are contiguous within each part."""
        ...

    def grain(self, part: int | str) -> int | None:
        """Return how many positions a record of a part has, about.

        None: a reader of some positions goes through all that are before.
        """
        ...


class Source(Protocol[T]):
    """The half that runs on the driver."""

    def probe(self, bound: Antichain[T]) -> Antichain[T]:
        """Return the upstream frontier, at or beyond ``bound``."""
        ...

    def verify(self) -> None:
        """Refuse if what was just read may not have been this source."""
        ...

    @property
    def reader(self) -> Reader:
        """The other half; it can be pickled."""
        ...
