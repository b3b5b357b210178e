"""Rows in batches, a few at a time, for a caller that sends them on.

What ``Result`` has as a list, an ``Answer`` gives as Arrow batches, in order, each row once: no
Python object per value, and no more in memory than a batch and what makes the next one. Rows that
are read from the runs while they are taken are of a time that is held meanwhile, and no longer: the
hold goes with the last row, with ``close``, or, if an answer was lost without it, with the next
tick. A slow reader of rows keeps no lock.

Tests: tests/session/test_answer.py.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

import pyarrow as pa

from reclock.dataflow.values import rows_of
from reclock.sql.statement.copy import CopyFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from reclock.sql.schema import Schema
    from reclock.subscribe.subscription import Subscription
    from reclock.time.holds import Hold
    from reclock.time.timestamp import Timestamp

BATCH_ROWS: Final = 4_096
_BATCH_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class CopyOut:
    """What COPY … TO STDOUT gives: an answer, or what is followed, to be written in a format."""

    of: Answer | Subscription
    format: CopyFormat = field(default_factory=CopyFormat)


class Answer:
    """Columns and rows of a query, at the time it was answered at; one thread takes at a time.

    ``tag`` is how PostgreSQL's command tag begins, before the number of rows.
    """

    def __init__(
        self,
        schema: Schema,
        batches: Generator[pa.RecordBatch, None, None],
        timestamp: Timestamp | None = None,
        *,
        tag: str = "SELECT",
    ) -> None:
        self.schema = schema
        self.timestamp = timestamp
        self.tag = tag
        self._batches = batches
        self._rest: pa.RecordBatch | None = None
        self._turn = threading.Lock()
        self._hold: Hold | None = None
        self._finalizer: finalize[..., Answer] | None = None

    def keep(self, hold: Hold, lost: Callable[[Callable[[], None]], None]) -> None:
        """Keep a hold until the end; ``lost`` is told how to let go if there never is one."""
        self._hold = hold
        self._finalizer = finalize(self, lost, hold.release)

    def take(self, limit: int | None = None) -> pa.RecordBatch | None:
        """Return some rows: a few thousand, fewer if they are large, at most ``limit``.

        None if there are no more.
        """
        with self._turn:
            while self._rest is None or not self._rest.num_rows:
                self._rest = next(self._batches, None)
                if self._rest is None:
                    self._let_go()
                    return None
            size = max(1, self._rest.nbytes // self._rest.num_rows)
            some = max(1, min(BATCH_ROWS, _BATCH_BYTES // size))
            taken = self._rest.slice(0, some if limit is None else min(limit, some))
            self._rest = self._rest.slice(taken.num_rows)
            return taken

    def batches(self, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows that are left, at most ``limit``."""
        left = limit
        while left != 0 and (batch := self.take(left)) is not None:
            left = None if left is None else left - batch.num_rows
            yield batch

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left as tuples of Python values."""
        kinds = [column.type for column in self.schema]
        batches = self.batches()
        return [row for batch in batches for row in rows_of(pa.Table.from_batches([batch]), kinds)]

    def close(self) -> None:
        """Give no more rows, and let go of what is held; again is harmless."""
        with self._turn:
            self._batches.close()
            self._rest = None
            self._let_go()

    def _let_go(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None and self._finalizer is not None:
            self._finalizer.detach()
            hold.release()
