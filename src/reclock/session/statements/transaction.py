"""BEGIN, COMMIT, ROLLBACK and savepoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidTransactionState
from reclock.rows.result import Result

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.session.transaction.transaction import Transaction
    from reclock.sql.statement import Begin, Commit, Release, Rollback, RollbackTo, Savepoint


def begin(context: Context, statement: Begin) -> Result:
    """Make the statements that follow parts of one transaction; in one, that is a warning."""
    if context.transaction is not None:
        return Result("BEGIN", warnings=(("25001", "there is already a transaction in progress"),))
    context.session.begin(statement)
    return Result("BEGIN")


def commit(context: Context, _: Commit) -> Result:
    """End a transaction: all of it happens, at one time; an aborted one is rolled back.

    If that fails, nothing has happened, and the transaction is over all the same.
    """
    transaction = context.transaction
    if transaction is None:
        return Result("COMMIT", warnings=(("25P01", "there is no transaction in progress"),))
    if transaction.aborted:
        return rollback(context)
    try:
        timestamp = transaction.commit(context.writing, context.session.interrupt)
    except BaseException:
        context.session.end(keep=False)
        raise
    context.session.end(keep=True)
    return Result("COMMIT", timestamp=timestamp)


def rollback(context: Context, _: Rollback | None = None) -> Result:
    """End a transaction: nothing of it happened. Without one there is nothing to undo."""
    if context.transaction is None:
        return Result("ROLLBACK", warnings=(("25P01", "there is no transaction in progress"),))
    context.session.end(keep=False)
    return Result("ROLLBACK")


def savepoint(context: Context, statement: Savepoint) -> Result:
    """Remember where the transaction is."""
    _going_on(context, "SAVEPOINT").save(statement.name, context.session.cursors.names)
    return Result("SAVEPOINT")


def release(context: Context, statement: Release) -> Result:
    """Forget a savepoint; what came after it stays."""
    _going_on(context, "RELEASE SAVEPOINT").forget(statement.name)
    return Result("RELEASE")


def rollback_to(context: Context, statement: RollbackTo) -> Result:
    """Undo what came after a savepoint, and go on from there; reads stay at their time."""
    open_then = _going_on(context, "ROLLBACK TO SAVEPOINT").go_back(
        statement.name, context.session.interrupt
    )
    for name in context.session.cursors.names - open_then:
        context.session.cursors.close(name)
    return Result("ROLLBACK")


def _going_on(context: Context, words: str) -> Transaction:
    if context.transaction is None:
        message = f"{words} can only be used in transaction blocks"
        raise InvalidTransactionState(message, code="25P01", hint="BEGIN first")
    return context.transaction
