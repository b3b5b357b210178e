"""INSERT: VALUES, or the rows of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.read import read_latest
from reclock.coordinator.result import Result
from reclock.coordinator.rows import column_from
from reclock.coordinator.sequence.drafting import draft_rows
from reclock.coordinator.sequence.read_then_write import read_then_write
from reclock.coordinator.sequence.target import assigned, planned, target_table, whole
from reclock.coordinator.write import Change, write
from reclock.errors import ConstraintViolation, StatementError, UndefinedName
from reclock.sql.plan.build import plan_query, plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.relation import Project, QueryPlan, Union, column
from reclock.sql.plan.scalar import Cast, Literal
from reclock.sql.syntax import expression as e
from reclock.sql.syntax import query as q
from reclock.sql.syntax.place import place_of, placed
from reclock.sql.types import Numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.item import Table
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import Insert
    from reclock.sql.syntax.expression import Name

_CONSTANTS = (
    e.NumberText, e.StringText, e.BooleanText, e.NullText, e.DefaultText, e.Parameter,
)  # fmt: skip


def insert(context: Context, statement: Insert) -> Result:
    """Add rows to a table."""
    names: list[str] = []

    def rows_of(table: Table, catalog: Catalog) -> list[pa.Array] | QueryPlan:
        places = places_of(statement.columns, statement.name, table)
        names[:] = [table.schema.names[i] for i in places]
        return _rows(context, statement, table, places, catalog)

    def plan_of(catalog: Catalog) -> tuple[Table, QueryPlan]:
        table = target_table(statement.name, catalog)
        rows = rows_of(table, catalog)
        assert isinstance(rows, QueryPlan)
        return table, rows

    def given(table: Table, catalog: Catalog) -> list[pa.Array]:
        rows = rows_of(table, catalog)
        return _constant(context, rows) if isinstance(rows, QueryPlan) else rows

    try:
        catalog = context.catalog
        rows = rows_of(target_table(statement.name, catalog), catalog)
        if not isinstance(rows, QueryPlan) or _is_constant(context, rows):
            return insert_into(context, statement.name, given)
        count, timestamp = read_then_write(context, plan_of, Change)
        return Result(f"INSERT 0 {count}", timestamp=timestamp)
    except ConstraintViolation as error:
        error.position = _where(error, statement, names) or statement.name.position
        raise


def _where(error: ConstraintViolation, statement: Insert, names: Sequence[str]) -> int | None:
    """Return where the value of a refused row stands, or else the row, if the text has it."""
    body = None if statement.query is None else statement.query.body
    if error.row is None or not isinstance(body, q.Values):
        return None
    if len(body.rows) > 1 and not all(isinstance(c, _CONSTANTS) for row in body.rows for c in row):
        return None  # Spark computes them, and keeps no order
    row = body.rows[error.row]
    at = names.index(error.column) if error.column in names else len(row)
    return place_of(row[at : at + 1]) or place_of(row)


def insert_into(
    context: Context, name: Name, rows_of: Callable[[Table, Catalog], list[pa.Array]]
) -> Result:
    """Add rows to a table: now, or when the transaction commits."""
    transaction = context.transaction
    if transaction is None:
        with context.writing() as world:
            table = target_table(name, world.catalog)
            rows = rows_of(table, world.catalog)
            timestamp = write(context.core, table, rows)
        return Result(f"INSERT 0 {len(rows[0])}", timestamp=timestamp)
    count = draft_rows(context, lambda catalog: target_table(name, catalog), rows_of)
    return Result(f"INSERT 0 {count}")


def places_of(columns: tuple[str, ...], target: Name, table: Table) -> tuple[int, ...]:
    """Return which columns of a table the values are for; none named is all."""
    names = table.schema.names
    for at, name in enumerate(columns):
        if name not in names:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            hint = f"there are the columns {', '.join(names)}"
            raise UndefinedName(message, hint=hint, position=target.position)
        if name in columns[:at]:
            message = f'column "{name}" specified more than once'
            hint = "name each column once"
            raise StatementError(message, code="42701", hint=hint, position=target.position)
    return tuple(names.index(name) for name in columns) or tuple(range(len(names)))


def _rows(
    context: Context,
    statement: Insert,
    table: Table,
    places: tuple[int, ...],
    catalog: Catalog,
) -> list[pa.Array] | QueryPlan:
    """Return the rows as columns of the table, or the plan of them."""
    query = statement.query
    if query is None:
        values = q.Values((tuple(e.DefaultText() for _ in places),))
        return _values(context, values, table, places, catalog)
    if isinstance(query.body, q.Values) and query == q.Query(query.body):
        return _values(context, query.body, table, places, catalog)
    node = plan_query(query, catalog, parameters=context.parameters).relation
    _check_count(node.width, statement, places)
    given: dict[int, Scalar] = {places[i]: column(node, i) for i in range(node.width)}
    outputs = _outputs(table, given, catalog, {})
    return planned(table, Project(node, outputs))


def _values(
    context: Context, values: q.Values, table: Table, places: tuple[int, ...], catalog: Catalog
) -> list[pa.Array] | QueryPlan:
    """Return VALUES as columns, or as a plan: literals never see Spark."""
    members = _members(values, table, places, catalog, context.parameters)
    constants = [_constants(member) for member in members]
    if all(row is not None for row in constants):
        known = [row for row in constants if row is not None]
        return [
            column_from((row[at] for row in known), defined)
            for at, defined in enumerate(table.schema)
        ]
    node: Node = members[0] if len(members) == 1 else Union(tuple(members))
    return planned(table, node)


def _members(
    values: q.Values,
    table: Table,
    places: tuple[int, ...],
    catalog: CatalogView,
    parameters: tuple[object, ...],
) -> list[Project]:
    """Return the plan of each row of VALUES."""
    members: list[Project] = []
    for row in values.rows:
        if len(row) != len(values.rows[0]):
            message = "VALUES lists must all be the same length"
            raise StatementError(message, code="42601")
        _check_count(len(row), None, places)
        block = Block()
        given: dict[int, Scalar] = {}
        for place, cell in zip(places, row, strict=False):
            if not isinstance(cell, e.DefaultText):
                given[place] = plan_scalar(cell, block, catalog, parameters)
        outputs = _outputs(table, given, catalog, dict(zip(places, row, strict=False)))
        members.append(Project(block.node, outputs))
    return members


def plan_insert(
    statement: Insert,
    catalog: Catalog,
    parameters: tuple[object, ...],
    reading: CatalogView | None = None,
) -> None:
    """Plan what would be inserted, for what is wrong with it and for types of parameters.

    ``reading`` is asked for the relations that it reads, in the catalog's place.
    """
    view = catalog if reading is None else reading
    table = target_table(statement.name, catalog)
    places = places_of(statement.columns, statement.name, table)
    query = statement.query
    if query is not None and isinstance(query.body, q.Values) and query == q.Query(query.body):
        _members(query.body, table, places, view, parameters)
    elif query is not None:
        _check_count(
            plan_query(query, view, parameters=parameters).relation.width, statement, places
        )


def _is_constant(context: Context, plan: QueryPlan) -> bool:
    """Return whether a plan in a transaction reads nothing: its rows are always the same."""
    return context.transaction is not None and plan.root.timeline.timeline is None


def _constant(context: Context, plan: QueryPlan) -> list[pa.Array]:
    """Return the rows of a plan that reads nothing."""
    return whole(read_latest(context.core, plan, context.session.role, context.session.interrupt))


def _constants(row: Project) -> list[object] | None:
    """Return the values of a row if all are known without Spark.

    A number for a numeric column is: the column's own check rounds it.
    """
    values: list[object] = []
    for _, scalar in row.outputs:
        match scalar:
            case Literal(value, _) | Cast(Literal(value, _), Numeric()):
                values.append(value)
            case _:
                return None
    return values


def _outputs(
    table: Table, given: dict[int, Scalar], catalog: CatalogView, cells: dict[int, e.Expression]
) -> tuple[tuple[str, Scalar], ...]:
    """Return what is stored in each column: what was given, or its default.

    ``cells`` are the expressions of the text, if it has one for each column.
    """
    outputs = []
    for at, defined in enumerate(table.columns):
        with placed(cells.get(at)):
            outputs.append((defined.column.name, assigned(table, at, given.get(at), catalog)))
    return tuple(outputs)


def _check_count(count: int, statement: Insert | None, places: tuple[int, ...]) -> None:
    """Refuse more values than columns; fewer only where no columns were listed."""
    listed = statement is not None and bool(statement.columns)
    if count > len(places) or (listed and count < len(places)):
        which = "more expressions than target columns"
        if count < len(places):
            which = "more target columns than expressions"
        message = f"INSERT has {which}"
        hint = f"there are {count} values for {len(places)} columns"
        position = None if statement is None else statement.name.position
        raise StatementError(message, code="42601", hint=hint, position=position)
