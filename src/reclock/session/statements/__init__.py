"""Statements: one file per statement, one function each.

A function takes the context and its statement, and returns a ``Result``. Statements that change
something hold the core's lock from reading the catalog to publishing, so nothing can come between;
a failure before that changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reclock.session.statements.alter_retain_history import alter_retain_history
from reclock.session.statements.alter_sink import alter_sink
from reclock.session.statements.alter_source import alter_source
from reclock.session.statements.alter_system import alter_system
from reclock.session.statements.alter_table import alter_table, rename
from reclock.session.statements.catalog_query import catalog_select
from reclock.session.statements.comment import comment
from reclock.session.statements.connections import (
    alter_secret,
    create_connection,
    create_secret,
)
from reclock.session.statements.copy import copy, copy_from
from reclock.session.statements.create_index import create_index
from reclock.session.statements.create_materialized_view import create_materialized_view
from reclock.session.statements.create_sequence import alter_sequence, create_sequence
from reclock.session.statements.create_sink import create_sink
from reclock.session.statements.create_source import create_source
from reclock.session.statements.create_table import create_table
from reclock.session.statements.create_table_as import create_table_as
from reclock.session.statements.create_view import create_view
from reclock.session.statements.cursor import close_cursor, declare, fetch
from reclock.session.statements.delete import delete
from reclock.session.statements.discard import deallocate, discard, prepare, unlisten
from reclock.session.statements.drop import drop
from reclock.session.statements.explain_plan import explain_plan
from reclock.session.statements.explain_timestamp import explain_timestamp
from reclock.session.statements.insert import insert
from reclock.session.statements.maintain import maintain
from reclock.session.statements.merge import merge
from reclock.session.statements.refresh_source import refresh_source
from reclock.session.statements.roles import alter_owner, alter_role, create_role, drop_role, grant
from reclock.session.statements.select import select
from reclock.session.statements.set_variable import set_transaction, set_variable
from reclock.session.statements.show import show
from reclock.session.statements.subscribe import subscribe
from reclock.session.statements.transaction import (
    begin,
    commit,
    release,
    rollback,
    rollback_to,
    savepoint,
)
from reclock.session.statements.truncate import truncate
from reclock.session.statements.update import update
from reclock.sql import statement as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.rows.result import Result
    from reclock.session.statements.context import Context

HANDLERS: Final[dict[type[s.Statement], Callable[[Context, Any], Result]]] = {
    s.AlterOwner: alter_owner,
    s.AlterRetainHistory: alter_retain_history,
    s.AlterRole: alter_role,
    s.AlterSecret: alter_secret,
    s.AlterSequence: alter_sequence,
    s.AlterSink: alter_sink,
    s.AlterSource: alter_source,
    s.RefreshSource: refresh_source,
    s.AlterSystem: alter_system,
    s.AlterTable: alter_table,
    s.Rename: rename,
    s.Begin: begin,
    s.CatalogQuery: catalog_select,
    s.CloseCursor: close_cursor,
    s.Comment: comment,
    s.Commit: commit,
    s.Copy: copy,
    s.CopyFrom: copy_from,
    s.CreateConnection: create_connection,
    s.CreateIndex: create_index,
    s.CreateMaterializedView: create_materialized_view,
    s.CreateRole: create_role,
    s.CreateSecret: create_secret,
    s.CreateSequence: create_sequence,
    s.CreateSink: create_sink,
    s.CreateSource: create_source,
    s.CreateTable: create_table,
    s.CreateTableAs: create_table_as,
    s.CreateView: create_view,
    s.Prepare: prepare,
    s.Deallocate: deallocate,
    s.Declare: declare,
    s.Delete: delete,
    s.Discard: discard,
    s.Drop: drop,
    s.DropRole: drop_role,
    s.ExplainPlan: explain_plan,
    s.ExplainTimestamp: explain_timestamp,
    s.Fetch: fetch,
    s.Grant: grant,
    s.Insert: insert,
    s.Maintain: maintain,
    s.Merge: merge,
    s.Release: release,
    s.Rollback: rollback,
    s.RollbackTo: rollback_to,
    s.Savepoint: savepoint,
    s.SelectStatement: select,
    s.SetTransaction: set_transaction,
    s.SetVariable: set_variable,
    s.Show: show,
    s.Subscribe: subscribe,
    s.Truncate: truncate,
    s.Unlisten: unlisten,
    s.Update: update,
}


def run(context: Context, statement: s.Statement) -> Result:
    """Run one statement."""
    return HANDLERS[type(statement)](context, statement)
