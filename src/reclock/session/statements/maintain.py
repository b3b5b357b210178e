"""VACUUM and ANALYZE: nothing is to be done, files are merged and forgotten by themselves.

Tools write them after a load (``pgbench -i``), and wait for the tag.

Tests: tests/session/test_maintain.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import RelationItem
from reclock.errors import InvalidTransactionState
from reclock.rows.result import Result

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Maintain


def maintain(context: Context, statement: Maintain) -> Result:
    """Say that it is done, if there are such tables."""
    if statement.command == "VACUUM" and context.transaction is not None:
        message = "VACUUM cannot run inside a transaction block"
        raise InvalidTransactionState(message, hint="COMMIT first; or leave it out")
    for name in statement.names:
        context.catalog.get(name, RelationItem)
    return Result(statement.command)
