"""CREATE TABLE … AS: a table with the columns and the rows of a query, at one timestamp.

It is CREATE TABLE and INSERT in a transaction, the session's or one of its own. One of its own is
run again if what the query reads has changed before it was done.

Tests: tests/session/test_create_table_as.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported, SerializationFailure, StatementError
from reclock.rows.result import Result, already_there
from reclock.session.define_table import define_table
from reclock.session.dml.insert import plan_insert
from reclock.session.dml.target import target_table
from reclock.session.dml.written import Written
from reclock.session.statements.drafting import draft_object, draft_query
from reclock.session.statements.transaction import commit
from reclock.sql.names import quoted
from reclock.sql.parse import parse_statement
from reclock.sql.plan.build import plan_query
from reclock.sql.statement import Begin, Commit, CreateTable, Insert
from reclock.sql.types import Array, Record

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Table
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.schema import Schema
    from reclock.sql.statement import CreateTableAs
    from reclock.sql.types import Type

ATTEMPTS: Final = 5
"""How often it is tried by itself while others change what it reads."""


def create_table_as(context: Context, statement: CreateTableAs) -> Result:
    """Make a table of a query."""
    if context.transaction is not None:
        return _drafted(context, statement)
    for left in reversed(range(ATTEMPTS)):
        try:
            return _alone(context, statement)
        except SerializationFailure:
            if not left:
                raise
    raise AssertionError


def _alone(context: Context, statement: CreateTableAs) -> Result:
    context.session.begin(Begin())
    try:
        done = _drafted(context, statement)
    except BaseException:
        context.session.end(keep=False)
        raise
    timestamp = commit(context, Commit()).timestamp
    return Result(done.tag, timestamp=timestamp, notices=done.notices)


def _drafted(context: Context, statement: CreateTableAs) -> Result:
    def make(draft: Draft) -> Table | None:
        if statement.if_not_exists and draft.catalog.find(statement.name.parts) is not None:
            return None
        plan = plan_query(statement.query, draft.read_catalog, parameters=context.parameters)
        text = _text(statement, plan.relation.schema)
        made = parse_statement(text)
        assert isinstance(made, CreateTable)
        return context.owned(define_table(made, text, draft.catalog)[0], draft)

    def plan_of(catalog: Catalog) -> Written:
        insert = Insert(statement.name, (), statement.query)
        table = target_table(statement.name, catalog)
        written = plan_insert(insert, table, catalog, context.parameters, constants=False)
        assert isinstance(written, Written)
        return written

    if not draft_object(context, statement, make):
        return Result("CREATE TABLE AS", notices=already_there(statement.name))
    if not statement.with_data:
        return Result("CREATE TABLE AS")
    return draft_query(context, plan_of).result("SELECT", None)


def _text(statement: CreateTableAs, schema: Schema) -> str:
    """Return the CREATE TABLE of a table like the query's rows."""
    given, position = statement.columns, statement.name.position
    if len(given) > len(schema):
        message = "too many column names were specified"
        hint = f"the query has {len(schema)} columns"
        raise StatementError(message, code="42601", hint=hint, position=position)
    names = [*given, *schema.names[len(given) :]]
    for at, name in enumerate(names):
        if name in names[:at]:
            message = f'column "{name}" specified more than once'
            hint = "give one of them another name: AS"
            raise StatementError(message, code="42701", hint=hint, position=position)
    for name, column in zip(names, schema, strict=True):
        if _has_record(column.type):
            message = f'column "{name}" of type {column.type} is not supported in a table'
            raise NotSupported(message, hint="select the fields one by one", position=position)
    listed = ", ".join(f"{quoted(n)} {c.type}" for n, c in zip(names, schema, strict=True))
    return f"CREATE TABLE {'.'.join(map(quoted, statement.name.parts))} ({listed})"


def _has_record(kind: Type) -> bool:
    return isinstance(kind, Record) or (isinstance(kind, Array) and _has_record(kind.element))
