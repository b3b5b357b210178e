"""TRUNCATE: tables lose all their rows, at one timestamp.

Tests: tests/session/test_truncate.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.serial.item import Position, Sequence
from reclock.rows.result import Result
from reclock.session.dml.target import target_table
from reclock.session.sequence_functions import set_value
from reclock.session.statements.delete import delete
from reclock.session.statements.transaction import commit
from reclock.sql.statement import Begin, Commit, Delete

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Truncate


def truncate(context: Context, statement: Truncate) -> Result:
    """Take all rows away; of several tables in a transaction, the session's or one of its own."""
    alone = context.transaction is None and len(statement.names) > 1
    if alone:
        context.session.begin(Begin())
    try:
        done = [delete(context, Delete(name, None, None)) for name in statement.names]
    except BaseException:
        if alone:
            context.session.end(keep=False)
        raise
    if statement.restart:
        _restart(context, statement)
    timestamp = commit(context, Commit()).timestamp if alone else done[-1].timestamp
    return Result("TRUNCATE TABLE", timestamp=timestamp)


def _restart(context: Context, statement: Truncate) -> None:
    """Have the sequences of the tables begin again, whatever becomes of a transaction."""
    catalog = context.catalog
    tables = {target_table(name, catalog).id for name in statement.names}
    for sequence in catalog.of_kind(Sequence):
        if sequence.owned_by is not None and sequence.owned_by.table in tables:
            set_value(context.session, sequence, Position(sequence.start, called=False))
