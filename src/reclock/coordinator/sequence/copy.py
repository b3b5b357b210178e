"""COPY (SELECT … | SUBSCRIBE …) TO STDOUT: lines of PostgreSQL's text format.

Tests: tests/coordinator/test_copy.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from reclock.coordinator.copy_text import line
from reclock.coordinator.sequence.select import answer
from reclock.coordinator.sequence.subscribe import open_subscription
from reclock.dataflow.values import rows_of
from reclock.errors import NotSupported
from reclock.sql.statement import Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.coordinator.answer import Answer
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.subscribe.subscription import Subscription
    from reclock.sql.statement import Copy, CopyFrom


def copy(context: Context, statement: Copy) -> NoReturn:
    """Refuse: what COPY gives are lines, not rows."""
    del context, statement
    message = "COPY cannot be executed for a result"
    raise NotSupported(message, hint="use copy(…)")


def copy_from(context: Context, statement: CopyFrom) -> NoReturn:
    """Refuse: what is copied comes after the statement."""
    del context, statement
    message = "COPY FROM STDIN cannot be executed for a result"
    raise NotSupported(message, hint="use insert(…), or a client of a server")


def copy_lines(context: Context, statement: Copy, timeout: float | None) -> Iterator[str]:
    """Run what is copied, and return its rows as lines."""
    if not isinstance(statement.of, Subscribe):
        return _answered(answer(context, statement.of))
    return _followed(open_subscription(context, statement.of, timeout))


def _answered(found: Answer) -> Iterator[str]:
    kinds = [c.type for c in found.schema]
    with closing(found):
        for batch in found.batches():
            for row in rows_of(pa.Table.from_batches([batch]), kinds):
                yield line(row, kinds)


def _followed(subscription: Subscription) -> Iterator[str]:
    kinds = [c.type for c in subscription.schema]
    with subscription:
        for update in subscription:
            yield line(subscription.values(update), kinds)
