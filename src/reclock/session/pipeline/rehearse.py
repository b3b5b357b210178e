"""A rehearsal: every statement of a file is planned as if those before it had been run.

The same functions as CREATE's own make the objects, in a temporary catalog. It looks for the
sources outside, so a missing topic is detected. Nothing is created, here or outside, and nothing is
computed. Tests: tests/session/pipeline/test_plan.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.connections import (
    SecretItem,
    define_connection,
    resolved,
    secret_text,
)
from reclock.export.define import key_of, relation_of
from reclock.ingest.connect import discover
from reclock.ingest.define import define_source
from reclock.ingest.postgres.define import define_tables
from reclock.session.define_table import define_table
from reclock.session.definition import define_index, define_materialized_view, define_view
from reclock.session.pipeline.plan import Action
from reclock.sql.statement import (
    CreateConnection,
    CreateIndex,
    CreateMaterializedView,
    CreateRole,
    CreateSecret,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateView,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.ingest.connect import Clusters
    from reclock.session.pipeline.plan import Step
    from reclock.sql.statement import Statement


def rehearse(steps: Iterable[Step], catalog: Catalog, clusters: Clusters) -> None:
    """Raise the error that the first of the steps would end with, if any would."""
    for step in steps:
        parsed = step.parsed
        if step.action is Action.CREATE and not isinstance(parsed.statement, CreateRole):
            if isinstance(parsed.statement, CreateSink):
                key_of(parsed.statement, relation_of(parsed.statement.relation, catalog))
            else:
                made = _defined(parsed.statement, parsed.text, catalog, clusters)
                catalog = catalog.changed(made, [])


def _defined(  # noqa: PLR0911 - one per kind
    statement: Statement, sql: str, catalog: Catalog, clusters: Clusters
) -> list[Item]:
    match statement:
        case CreateTable():
            table, sequences, indexes = define_table(statement, sql, catalog)
            return [*sequences, table, *indexes]
        case CreateView():
            return [define_view(statement, sql, catalog)]
        case CreateMaterializedView():
            return [define_materialized_view(statement, sql, catalog)]
        case CreateSecret():
            name = catalog.check_new(statement.name)
            secret = SecretItem(
                catalog.next_id, name, secret_text(name), None, value=statement.value
            )
            return [secret]
        case CreateConnection():
            catalog.check_new(statement.name)
            return [define_connection(catalog.next_id, statement, catalog)]
        case CreateIndex():
            return [define_index(statement, sql, catalog)]
        case CreateSource():
            name = catalog.check_new(statement.name)
            statement, linked = resolved(statement, catalog)
            facts = discover(statement, clusters)
            made = define_source(statement, sql, catalog.next_id, name, facts, linked=linked)
            return [made, *define_tables(made)]
    raise AssertionError(statement)
