"""COPY (SELECT … | SUBSCRIBE …) TO STDOUT: lines of PostgreSQL's text format.

Tests: tests/coordinator/test_copy.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from reclock.coordinator.copy_text import line
from reclock.coordinator.sequence.select import select
from reclock.coordinator.sequence.subscribe import open_subscription
from reclock.errors import NotSupported
from reclock.sql.statement import SelectStatement

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if isinstance(statement.of, SelectStatement):
        result = select(context, statement.of)
        assert result.schema is not None
        kinds = [c.type for c in result.schema]
        return (line(row, kinds) for row in result.rows)
    return _followed(open_subscription(context, statement.of, timeout))


def _followed(subscription: Subscription) -> Iterator[str]:
    kinds = [c.type for c in subscription.schema]
    with subscription:
        for update in subscription:
            yield line(subscription.values(update), kinds)
