"""INSERT: the rows of VALUES or of a query, as rows of the table.

Constant rows of VALUES become columns directly, without a query. For keys that may exist already,
see ``conflict``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.errors import StatementError, UndefinedName
from reclock.rows.given import column_from
from reclock.session.dml.conflict import plan_conflict
from reclock.session.dml.defaults import DRY, Defaults
from reclock.session.dml.rows import Step, Target, as_it_is, new_row, written
from reclock.session.dml.written import Action, Form
from reclock.sql.plan.build.block import ONE_EMPTY_ROW
from reclock.sql.plan.build.write import WritePlanner
from reclock.sql.plan.relation import Project, Union, column, empty
from reclock.sql.plan.scalar import Cast, ColumnRef, Literal
from reclock.sql.syntax import expression as e
from reclock.sql.syntax import query as q
from reclock.sql.types import BIGINT, Numeric

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from reclock.catalog.item import Table
    from reclock.catalog.unique import UniqueKey
    from reclock.session.dml.rows import Outputs
    from reclock.session.dml.written import Written
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.schema import Schema
    from reclock.sql.statement import Insert
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True)
class Given:
    """Rows that are constants; RETURNING gives some of their columns."""

    table: Table
    columns: list[pa.Array]
    picked: tuple[int, ...] = ()
    returned: Schema | None = None


def plan_insert(
    statement: Insert,
    table: Table,
    catalog: CatalogView,
    parameters: tuple[object, ...],
    *,
    constants: bool = True,
    defaults: Defaults = DRY,
    keys: tuple[UniqueKey, ...] = (),
) -> Written | Given:
    """Return the rows that are inserted, if they are ``constants``, or the plan of what happens.

    ``keys`` are those that ON CONFLICT may mean.
    """
    planner = WritePlanner(catalog, parameters, statement.common)
    target = Target(planner, table, statement.name, statement.alias, defaults, keys)
    places = places_of(statement.columns, statement.name, table)
    proposed = _proposed(target, statement, places)
    if statement.conflict is not None:
        return plan_conflict(target, statement, _as_rows(proposed))
    given = _given(target, statement, proposed) if constants else None
    if given is not None:
        return given
    block = planner.block(_as_rows(proposed))
    place = column(block.node, target.width)
    step = Step(block, Action.INSERT, after=as_it_is(block, table), place=place)
    form = Form(before=False, after=True, place=bool(statement.returning))
    return written(target, form, [step], statement.returning)


def _proposed(target: Target, statement: Insert, places: tuple[int, ...]) -> list[Project]:
    """Return the rows as those of the table, each with its place: of VALUES one by one."""
    query = statement.query
    if query is None:
        values = q.Values((tuple(e.DefaultText() for _ in places),))
        return _members(target, statement, values, places)
    if isinstance(query.body, q.Values) and query == q.Query(query.body):
        return _members(target, statement, query.body, places)
    node = target.planner.query(query)
    _check_count(node.width, statement, places)
    _check_always(target, statement, places[: node.width])
    given: dict[int, Scalar] = {
        places[i]: column(node, i)
        for i in range(node.width)
        if not _ignores(target, statement, places[i])
    }
    outputs = new_row(target, given, {})
    return [Project(node, (*outputs, ("place", Literal(0, BIGINT))))]


def _ignores(target: Target, statement: Insert, at: int) -> bool:
    """Return whether a value does not count: OVERRIDING USER VALUE, of an identity column."""
    return statement.overriding == "user" and target.table.columns[at].identity is not None


def _check_always(target: Target, statement: Insert, given: Iterable[int]) -> None:
    """Refuse values for columns that are GENERATED ALWAYS, unless OVERRIDING SYSTEM VALUE."""
    if statement.overriding is not None:
        return
    for at in given:
        column = target.table.columns[at]
        if column.identity == "always":
            name = column.column.name
            message = f'cannot insert a non-DEFAULT value into column "{name}"'
            detail = f'Column "{name}" is an identity column defined as GENERATED ALWAYS.'
            hint = "Use OVERRIDING SYSTEM VALUE to override."
            position = statement.name.position
            raise StatementError(message, detail=detail, hint=hint, code="428C9", position=position)


def _as_rows(members: list[Project]) -> Node:
    return members[0] if len(members) == 1 else Union(tuple(members))


def _members(
    target: Target, statement: Insert, values: q.Values, places: tuple[int, ...]
) -> list[Project]:
    """Return the plan of each row of VALUES."""
    members: list[Project] = []
    for number_of_row, row in enumerate(values.rows):
        if len(row) != len(values.rows[0]):
            message = "VALUES lists must all be the same length"
            raise StatementError(message, code="42601")
        _check_count(len(row), None, places)
        block = target.planner.block(ONE_EMPTY_ROW)
        given: dict[int, Scalar] = {}
        for place, cell in zip(places, row, strict=False):
            if isinstance(cell, e.DefaultText) or _ignores(target, statement, place):
                continue
            number = target.defaults.called(cell, number_of_row, place, target.catalog, BIGINT)
            given[place] = number or target.planner.value(block, cell)
        _check_always(target, statement, given)
        cells = dict(zip(places, row, strict=False))
        outputs = new_row(target, given, cells, number_of_row)
        members.append(Project(block.node, (*outputs, ("place", Literal(number_of_row, BIGINT)))))
    return members


def _given(target: Target, statement: Insert, members: list[Project]) -> Given | None:
    """Return rows that are constants, if RETURNING asks for no more than columns of them."""
    if statement.query is not None and not isinstance(statement.query.body, q.Values):
        return None
    table = target.table
    constants = [_constants(member, target.width) for member in members]
    rows = [row for row in constants if row is not None]
    if len(rows) < len(members):
        return None
    outputs: Outputs = []
    if statement.returning:
        block = target.planner.block(empty(table.schema), target.scope())
        outputs = target.planner.outputs(block, statement.returning)
    picked = [scalar.index for _, scalar in outputs if isinstance(scalar, ColumnRef)]
    if len(picked) < len(outputs) or any(at >= target.width for at in picked):
        return None  # a subquery's value would be a column behind those of the table
    columns = [
        column_from((row[at] for row in rows), defined) for at, defined in enumerate(table.schema)
    ]
    if not outputs:
        return Given(table, columns)
    returned = Project(empty(table.schema), tuple(outputs)).schema
    return Given(table, columns, tuple(picked), returned)


def _constants(row: Project, width: int) -> list[object] | None:
    """Return the values of a row if all are known without Spark.

    A number for a numeric column is: the column's own check rounds it.
    """
    values: list[object] = []
    for _, scalar in row.outputs[:width]:
        match scalar:
            case Literal(value, _) | Cast(Literal(value, _), Numeric()):
                values.append(value)
            case _:
                return None
    return values


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
