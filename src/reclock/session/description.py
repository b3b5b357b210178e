"""The parameters and columns of a statement, found without running it.

A prepared statement is planned with placeholders: each parameter has the type that was declared
for it, or the first one that its surroundings want, or is text. The columns are those that an
answer has: the catalog may change before the statement runs, so who relies on them compares.

Tests: tests/session/test_describe.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.session.described import Description
from reclock.session.dml.plan import plan_write
from reclock.session.statements.explain_plan import PLAN_SCHEMA
from reclock.session.statements.explain_timestamp import TIMESTAMP_SCHEMA
from reclock.session.statements.show import show
from reclock.sql import statement as s
from reclock.sql.as_of import with_times
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.build.parameter import Placeholder
from reclock.sql.schema import Schema
from reclock.sql.types import TEXT, UNKNOWN
from reclock.subscribe.target import plan_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.catalog.catalog import Catalog
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Parsed
    from reclock.sql.types import Type


def describe(context: Context, parsed: Parsed, declared: Sequence[Type]) -> Description:
    """Plan a statement; ``declared`` are types of its first parameters, perhaps unknown."""
    if isinstance(parsed.statement, s.CatalogQuery):
        kinds = context.core.pg.types(parsed.statement, declared)
        return Description(kinds, context.core.pg.schema(context, parsed.statement, kinds))
    match parsed.statement:
        case s.Declare(_, s.CatalogQuery() as of) | s.Copy(s.CatalogQuery() as of):
            return Description(context.core.pg.types(of, declared), None)
        case s.ExplainPlan(s.CatalogQuery() as of):
            return Description(context.core.pg.types(of, declared), PLAN_SCHEMA)
    count = max(parsed.parameters, len(declared))
    known = [*declared, *(UNKNOWN for _ in range(count - len(declared)))]
    placeholders = tuple(Placeholder(kind) for kind in known)
    with context.core.reading() as world:
        statement = with_times(parsed.statement, placeholders)
        catalog = world.catalog if context.transaction is None else context.catalog
        schema = _schema(context, statement, placeholders, catalog)
    types = tuple(TEXT if p.type == UNKNOWN else p.type for p in placeholders)
    return Description(types, schema)


def _schema(  # noqa: PLR0911 - one per kind of statement
    context: Context, statement: s.Statement, given: tuple[object, ...], catalog: Catalog
) -> Schema | None:
    match statement:
        case s.SelectStatement(query, _):
            plan = plan_query(query, catalog, parameters=given)
            return Schema(plan.root.schema.columns[: plan.visible - statement.hidden])
        case s.Subscribe():
            return plan_target(statement, given, catalog).output
        case s.Declare(_, of):
            _schema(context, of, given, catalog)
            return None
        case s.Fetch(name):
            return context.session.cursors.get(name).schema
        case s.ExplainPlan():
            return PLAN_SCHEMA
        case s.ExplainTimestamp():
            return TIMESTAMP_SCHEMA
        case s.Show():
            return show(context, statement).schema
        case s.CreateTableAs(_, query):
            plan_query(query, catalog, parameters=given)
        case s.Insert() | s.Update() | s.Delete() | s.Merge():
            return plan_write(statement, catalog, given).returned
    return None
