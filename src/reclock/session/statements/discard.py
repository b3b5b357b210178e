"""PREPARE; DEALLOCATE, DISCARD and UNLISTEN: what pools say before another uses a connection.

EXECUTE is no statement that runs: ``prepared.executed`` puts what it names in its place.

Tests: tests/session/test_discard.py, test_prepared.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidTransactionState
from reclock.rows.result import Result
from reclock.session.described import PreparedStatement
from reclock.session.prepared import check_free

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Deallocate, Discard, Prepare, Unlisten


def prepare(context: Context, statement: Prepare) -> Result:
    """Keep a statement, once it is known what it takes and gives, and that the role may run it."""
    session = context.session
    check_free(statement.name, session.prepared)
    described = session.description_of(statement.of, statement.types)
    session.prepared[statement.name] = PreparedStatement(statement.of, described)
    return Result("PREPARE")


def deallocate(context: Context, statement: Deallocate) -> Result:
    """Forget what a client prepared."""
    context.session.forget(statement.name)
    return Result("DEALLOCATE" if statement.name is not None else "DEALLOCATE ALL")


def discard(context: Context, statement: Discard) -> Result:
    """Make a session like a new one; of parts, there are no temporary tables."""
    session = context.session
    if statement.what in {"all", "sequences"}:
        session.numbers.clear()
    if statement.what == "all":
        if session.transaction is not None:
            message = "DISCARD ALL cannot run inside a transaction"
            raise InvalidTransactionState(message, hint="COMMIT or ROLLBACK first")
        session.cursors.close_all()
        session.forget(None)
        session.set(None, None, local=False)
    return Result(f"DISCARD {statement.what.upper()}")


def unlisten(_: Context, __: Unlisten) -> Result:
    """Do nothing: there is no LISTEN."""
    return Result("UNLISTEN")
