"""Statements as frozen values, one file per family; what each means is decided later.

A statement holds names as they were written (folded to lower case unless quoted), queries
as ``syntax.query.Query``, durations in milliseconds. ``Statement`` is the union of all.
"""

from __future__ import annotations

from reclock.sql.statement.alter_table import AlterTable, Rename
from reclock.sql.statement.catalog_query import CatalogQuery
from reclock.sql.statement.comment import Comment
from reclock.sql.statement.connection import AlterSecret, CreateConnection, CreateSecret
from reclock.sql.statement.copy import Copy, CopyFrom
from reclock.sql.statement.cursor import CloseCursor, Declare, Fetch
from reclock.sql.statement.explain import ExplainPlan, ExplainTimestamp
from reclock.sql.statement.index import CreateIndex
from reclock.sql.statement.maintain import Maintain
from reclock.sql.statement.objects import AlterOwner, AlterRetainHistory, Drop, Show
from reclock.sql.statement.role import AlterRole, CreateRole, DropRole, Grant
from reclock.sql.statement.select import SelectStatement
from reclock.sql.statement.sequence import AlterSequence, CreateSequence
from reclock.sql.statement.session import Deallocate, Discard, Execute, Prepare, Unlisten
from reclock.sql.statement.settings import AlterSystem, SetTransaction, SetVariable
from reclock.sql.statement.sink import AlterSink, CreateSink
from reclock.sql.statement.source import AlterSource, CreateSource, RefreshSource
from reclock.sql.statement.subscribe import Subscribe
from reclock.sql.statement.table import CreateTable, CreateTableAs
from reclock.sql.statement.transaction import (
    Begin,
    Commit,
    Release,
    Rollback,
    RollbackTo,
    Savepoint,
)
from reclock.sql.statement.view import CreateMaterializedView, CreateView, Refresh
from reclock.sql.statement.write import Delete, Insert, Merge, Truncate, Update

Statement = (
    AlterOwner
    | AlterRetainHistory
    | AlterRole
    | AlterSecret
    | AlterSequence
    | AlterSink
    | AlterSource
    | RefreshSource
    | AlterSystem
    | AlterTable
    | Begin
    | CatalogQuery
    | CloseCursor
    | Comment
    | Commit
    | Copy
    | CopyFrom
    | CreateConnection
    | CreateIndex
    | CreateMaterializedView
    | CreateRole
    | CreateSecret
    | CreateSequence
    | CreateSink
    | CreateSource
    | CreateTable
    | CreateTableAs
    | CreateView
    | Deallocate
    | Declare
    | Delete
    | Discard
    | Drop
    | DropRole
    | Execute
    | ExplainPlan
    | ExplainTimestamp
    | Fetch
    | Grant
    | Insert
    | Maintain
    | Merge
    | Prepare
    | Release
    | Rename
    | Rollback
    | RollbackTo
    | Savepoint
    | SelectStatement
    | SetTransaction
    | SetVariable
    | Show
    | Subscribe
    | Truncate
    | Unlisten
    | Update
)

__all__ = [
    "AlterOwner",
    "AlterRetainHistory",
    "AlterRole",
    "AlterSecret",
    "AlterSequence",
    "AlterSink",
    "AlterSource",
    "AlterSystem",
    "AlterTable",
    "Begin",
    "CatalogQuery",
    "CloseCursor",
    "Comment",
    "Commit",
    "Copy",
    "CopyFrom",
    "CreateConnection",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateRole",
    "CreateSecret",
    "CreateSequence",
    "CreateSink",
    "CreateSource",
    "CreateTable",
    "CreateTableAs",
    "CreateView",
    "Deallocate",
    "Declare",
    "Delete",
    "Discard",
    "Drop",
    "DropRole",
    "Execute",
    "ExplainPlan",
    "ExplainTimestamp",
    "Fetch",
    "Grant",
    "Insert",
    "Maintain",
    "Merge",
    "Prepare",
    "Refresh",
    "RefreshSource",
    "Release",
    "Rename",
    "Rollback",
    "RollbackTo",
    "Savepoint",
    "SelectStatement",
    "SetTransaction",
    "SetVariable",
    "Show",
    "Statement",
    "Subscribe",
    "Truncate",
    "Unlisten",
    "Update",
]
