"""SET, RESET and SET TRANSACTION."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.rows.result import Result

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import SetTransaction, SetVariable


def set_variable(context: Context, statement: SetVariable) -> Result:
    """Set a setting of the session, or of its transaction, or reset it to the system's."""
    context.session.set(statement.name, statement.value, local=statement.local)
    return Result("RESET" if statement.value is None else "SET")


def set_transaction(context: Context, statement: SetTransaction) -> Result:
    """Set the modes of the transaction under way, or of those to come."""
    session = context.session
    within = session.transaction is not None and not statement.session
    if statement.isolation is not None:
        session.set("transaction_isolation", statement.isolation, local=within)
    if statement.read_only is not None:
        name = "transaction_read_only" if within else "default_transaction_read_only"
        session.set(name, "on" if statement.read_only else "off", local=within)
    return Result("SET")
