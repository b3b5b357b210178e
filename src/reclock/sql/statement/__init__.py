"""Statements as frozen values, one file per family; what each means is decided later.

A statement holds names as they were written (folded to lower case unless quoted), queries
as ``syntax.query.Query``, durations in milliseconds. ``Statement`` is the union of all; those
that contain another (``Prepare``) are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from reclock.sql.statement.session import Deallocate, Discard, Execute, Unlisten
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

if TYPE_CHECKING:
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class Prepare:
    """``PREPARE name [(types)] AS statement``."""

    name: str
    types: tuple[Type, ...]
    of: Parsed


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


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, its text, where that text begins (from 1), and the greatest n of its $n."""

    statement: Statement
    text: str
    position: int
    parameters: int = 0


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
    "Parsed",
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
