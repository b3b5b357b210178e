"""SET and RESET."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.result import Result

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import SetVariable


def set_variable(context: Context, statement: SetVariable) -> Result:
    """Set a setting of the session, or of its transaction, or reset it to the system's."""
    context.session.set(statement.name, statement.value, local=statement.local)
    return Result("RESET" if statement.value is None else "SET")
