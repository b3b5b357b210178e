"""SET and RESET."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.result import Result
from reclock.errors import NotSupported

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import SetVariable


def set_variable(context: Context, statement: SetVariable) -> Result:
    """Set a setting of the session, or reset it to its default."""
    if statement.local:
        message = "SET LOCAL is not supported"
        raise NotSupported(message, hint="write SET, and RESET it afterwards")
    context.settings.set(statement.name, statement.value)
    return Result("RESET" if statement.value is None else "SET")
