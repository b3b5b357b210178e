"""DECLARE, FETCH and CLOSE.

Tests: tests/session/test_cursor.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidTransactionState
from reclock.rows.result import Result
from reclock.session.cursor import Cursor
from reclock.session.statements.select import answer
from reclock.session.statements.subscribe import open_subscription
from reclock.sql.statement import Subscribe

if TYPE_CHECKING:
    from reclock.session.answer import Answer
    from reclock.session.statements.context import Context
    from reclock.sql.statement import CloseCursor, Declare, Fetch


def declare(context: Context, statement: Declare) -> Result:
    """Begin to answer a query, or to follow it, for FETCH."""
    if context.transaction is None and not statement.hold:
        message = "DECLARE CURSOR can only be used in a transaction"
        hint = "BEGIN first, or declare it WITH HOLD"
        raise InvalidTransactionState(message, code="25P01", hint=hint)
    context.session.cursors.check_new(statement.name)
    if not isinstance(statement.of, Subscribe):
        made = Cursor(answer(context, statement.of), held=statement.hold)
    else:
        made = Cursor(open_subscription(context, statement.of, None), held=statement.hold)
    context.session.cursors.add(statement.name, made)
    return Result("DECLARE CURSOR")


def fetch(context: Context, statement: Fetch) -> Result:
    """Give the next rows of a cursor."""
    cursor = context.session.cursors.get(statement.name)
    timeout = statement.timeout_ms / 1_000
    rows = cursor.fetch(statement.count, timeout, context.session.interrupt)
    return Result(f"FETCH {len(rows)}", cursor.schema.names, rows, schema=cursor.schema)


def fetched(context: Context, statement: Fetch) -> Answer | Result:
    """Return the next rows of a cursor, to be taken in batches."""
    cursor = context.session.cursors.get(statement.name)
    return cursor.part(statement.count) or fetch(context, statement)


def close_cursor(context: Context, statement: CloseCursor) -> Result:
    """End a cursor, or all."""
    if statement.name is None:
        context.session.cursors.close_all()
        return Result("CLOSE CURSOR ALL")
    context.session.cursors.get(statement.name)
    context.session.cursors.close(statement.name)
    return Result("CLOSE CURSOR")
