"""INSERT: VALUES, or the rows of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.engine.constraints import fitted
from reclock.engine.read import read_latest
from reclock.engine.write import Change, write_all
from reclock.errors import ConstraintViolation
from reclock.session.dml.defaults import Defaults
from reclock.session.dml.insert import Given, places_of, plan_insert
from reclock.session.dml.target import target_table, whole
from reclock.session.dml.written import Outcome
from reclock.session.statements.drafting import draft_rows
from reclock.session.statements.read_then_write import read_then_write
from reclock.sql.syntax import expression as e
from reclock.sql.syntax import query as q
from reclock.sql.syntax.place import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Table
    from reclock.rows.result import Result
    from reclock.session.dml.written import Written
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Insert
    from reclock.sql.syntax.expression import Name
    from reclock.time.timestamp import Timestamp

_CONSTANTS = (
    e.NumberText, e.StringText, e.BooleanText, e.NullText, e.DefaultText, e.Parameter,
)  # fmt: skip


def insert(context: Context, statement: Insert) -> Result:
    """Add rows to a table."""
    defaults = Defaults(context.session)

    def planned(catalog: Catalog) -> Written | Given:
        table = target_table(statement.name, catalog)
        keys = catalog.unique_keys(table)
        return plan_insert(
            statement, table, catalog, context.parameters, defaults=defaults, keys=keys
        )

    def plan_of(catalog: Catalog) -> Written:
        found = planned(catalog)
        assert not isinstance(found, Given)
        return found

    def given(_: Table, catalog: Catalog) -> list[pa.Array]:
        found = planned(catalog)
        return found.columns if isinstance(found, Given) else _constant(context, found)

    first = planned(context.catalog)
    try:
        if isinstance(first, Given):
            outcome, timestamp = _add(context, statement.name, given, first)
        elif _is_constant(context, statement, first):
            outcome, timestamp = _add(context, statement.name, given)
        else:
            outcome, timestamp = read_then_write(context, plan_of)
    except ConstraintViolation as error:
        places = places_of(statement.columns, statement.name, first.table)
        names = [first.table.schema.names[i] for i in places]
        error.position = _where(error, statement, names) or statement.name.position
        raise
    return outcome.result("INSERT 0", timestamp)


def _where(error: ConstraintViolation, statement: Insert, names: Sequence[str]) -> int | None:
    """Return where the value of a refused row stands, or else the row, if the text has it."""
    body = None if statement.query is None else statement.query.body
    if error.row is None or not isinstance(body, q.Values) or statement.conflict is not None:
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
    outcome, timestamp = _add(context, name, rows_of)
    return outcome.result("INSERT 0", timestamp)


def _add(
    context: Context,
    name: Name,
    rows_of: Callable[[Table, Catalog], list[pa.Array]],
    first: Given | None = None,
) -> tuple[Outcome, Timestamp | None]:
    """Add rows that depend on nothing, and give some of their columns back as they are kept."""
    timestamp = None
    if context.transaction is None:
        with context.writing() as world:
            table = target_table(name, world.catalog)
            change = Change(table, rows_of(table, world.catalog))
            timestamp = write_all(context.core, [change])
    else:
        change = draft_rows(context, lambda catalog: target_table(name, catalog), rows_of).change
    count = len(change.added[0])
    if first is None or first.returned is None:
        return Outcome(change, count), timestamp
    added = fitted(change.table, change.added)
    return Outcome(change, count, [added[i] for i in first.picked], first.returned), timestamp


def _is_constant(context: Context, statement: Insert, written: Written) -> bool:
    """Return whether a plan in a transaction reads nothing: its rows are always the same."""
    plain = statement.conflict is None and not statement.returning
    constant = written.plan.root.timeline.timeline is None
    return context.transaction is not None and plain and constant


def _constant(context: Context, written: Written) -> list[pa.Array]:
    """Return the rows of a plan that reads nothing."""
    core, session = context.core, context.session
    return whole(read_latest(core, written.plan, session.role, session.interrupt))
