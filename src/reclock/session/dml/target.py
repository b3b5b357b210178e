"""Common parts of INSERT, UPDATE and DELETE: a table, and values for its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from reclock.catalog.item import RelationItem, Table
from reclock.catalog.system_relation import SystemRelation
from reclock.errors import StatementError
from reclock.session.dml.defaults import DRY, Defaults
from reclock.sql.plan.coerce import assignable
from reclock.sql.plan.relation import QueryPlan
from reclock.time.timeline import TimelineContext

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.syntax.expression import Name


def target_table(name: Name, catalog: Catalog) -> Table:
    """Return the table that a statement writes to."""
    item = catalog.get(name, RelationItem)
    if isinstance(item, Table):
        return item
    if isinstance(item, SystemRelation):
        message = f'system relation "{item.name}" can only be read'
        hint = "it changes with what it shows"
        raise StatementError(message, hint=hint, code="42501", position=name.position)
    message = f'cannot change {item.kind} "{item.name}"'
    hint = "change the tables that it reads"
    raise StatementError(message, hint=hint, code="42809", position=name.position)


def assigned(
    table: Table,
    at: int,
    value: Scalar | None,
    catalog: CatalogView,
    defaults: Defaults = DRY,
    *,
    row: int | None = None,
) -> Scalar:
    """Return a value as it is stored in column ``at``; None stands for its default.

    ``row`` is the number of a row of VALUES: only of these a sequence's number is known here.
    """
    defined = table.columns[at]
    if value is None:
        value = defaults.scalar(table, at, catalog, row)
    try:
        return assignable(value, defined.column.type, defined.column.name)
    except StatementError as error:
        if error.detail is None:
            error.detail = f'column "{defined.column.name}" of relation "{table.name}"'
        raise


def planned(table: Table, node: Node) -> QueryPlan:
    """Return the plan of rows for ``table``; they must be of its timeline, or constant."""
    TimelineContext(table.timeline, table.name).combine(node.timeline)
    return QueryPlan(node, node.width)


def whole(answer: pa.Table) -> list[pa.Array]:
    """Return the columns of an answer, each in one piece."""
    return [
        pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in answer.columns
    ]
