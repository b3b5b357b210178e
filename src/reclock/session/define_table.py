"""From CREATE TABLE to a table, with the sequences of its columns and its constraints.

A constraint without a name is called as PostgreSQL calls it: ``t_a_check`` if it is of one column,
``t_check`` if not, and a number after that if the name is taken. A sequence of a column is
``t_a_seq``; it has the id before the table's, and is dropped with it. A UNIQUE constraint is a
unique index, ``t_a_b_key``, whose id follows the table's; of constraints that say the same there is
one, as in PostgreSQL.

Tests: tests/session/test_defaults.py, tests/session/test_sequences.py,
tests/session/test_unique.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Check, Index, Table, TableColumn
from reclock.catalog.serial.define import sequence_of
from reclock.catalog.serial.item import OwnedBy, Sequence
from reclock.errors import DuplicateName, NotSupported, StatementError
from reclock.ids import ObjectId
from reclock.session.sequence_functions import drawn_from
from reclock.sql.names import NOTHING, quoted
from reclock.sql.plan.build.write import WritePlanner, scope_of
from reclock.sql.plan.relation import empty
from reclock.sql.schema import Column
from reclock.sql.syntax.place import placed
from reclock.time.timeline import EPOCH_MS, User, user_timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Sequence as Values

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.unique import UniqueKey
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import CreateTable
    from reclock.sql.statement.column import CheckDefinition, ColumnList, UniqueDefinition
    from reclock.time.timeline import Timeline


def define_table(
    statement: CreateTable, sql: str, catalog: Catalog
) -> tuple[Table, tuple[Sequence, ...], tuple[Index, ...]]:
    """Return the table that the statement makes, its sequences, and the indexes of its UNIQUE."""
    name = catalog.check_new(statement.name)
    timeline = EPOCH_MS if statement.timeline is None else user_timeline(statement.timeline)
    own = [c for c in statement.columns.columns if c.sequence is not None]
    first = int(catalog.version) + 1
    item = ObjectId(f"u{first + len(own)}")
    sequences: dict[str, Sequence] = {}
    taken = {name}
    for at, column in enumerate(own):
        assert column.sequence is not None
        options = column.sequence
        if options.type is None:
            options = replace(options, type=column.type)
        called = catalog.free_name(f"{name}_{column.name}_seq", taken)
        taken.add(called)
        number = [c.name for c in statement.columns.columns].index(column.name) + 1
        made = sequence_of(ObjectId(f"u{first + at}"), called, options)
        sequences[column.name] = replace(made, owned_by=OwnedBy(item, number))
    table = table_of(item, name, sql, timeline, statement)
    drawn = {
        str(at): found.id
        for at, c in enumerate(table.columns)
        if (found := sequences.get(c.column.name) or _named(c, catalog)) is not None
    }
    table = with_sequences(table, drawn)
    indexes: list[Index] = []
    for unique in _different(statement.columns):
        key = tuple(table.schema.names.index(column) for column in unique.columns)
        index = ObjectId(f"u{first + len(own) + 1 + len(indexes)}")
        called = unique_name(table, unique, catalog, taken)
        taken.add(called)
        indexes.append(unique_index(index, called, table, key, unique.nulls_distinct))
    return table, tuple(sequences.values()), tuple(indexes)


def _different(given: ColumnList) -> list[UniqueDefinition]:
    """Return the UNIQUE constraints, of those that say the same one, with a name if one has one."""
    found: dict[tuple[tuple[str, ...], bool], UniqueDefinition] = {}
    for unique in given.uniques:
        what = (unique.columns, unique.nulls_distinct)
        known = found.get(what)
        if known is None or known.name is None:
            found[what] = unique
    if given.key_enforced:
        found.pop((given.primary_key, True), None)
    return list(found.values())


def unique_name(
    table: Table, unique: UniqueDefinition, catalog: Catalog, taken: Iterable[str] = ()
) -> str:
    """Return what a UNIQUE constraint is called; refuse a name that is taken."""
    others = {check.name for check in table.checks} | set(taken)
    if table.primary_key:
        others.add(table.key_constraint)
    if unique.name is None:
        return catalog.free_name(f"{table.name}_{'_'.join(unique.columns)}_key", others)
    if unique.name in others or catalog.find((unique.name,)) is not None:
        message = f'relation "{unique.name}" already exists'
        hint = "give the constraint another name"
        raise DuplicateName(message, hint=hint, position=unique.position)
    return unique.name


def unique_index(
    item: ObjectId, name: str, table: Table, key: tuple[int, ...], nulls_distinct: bool
) -> Index:
    """Return the index of a UNIQUE constraint."""
    columns = ", ".join(quoted(table.schema[at].name) for at in key)
    sql = f"CREATE UNIQUE INDEX {quoted(name)} ON {quoted(table.name)} ({columns})"
    if not nulls_distinct:
        sql += " NULLS NOT DISTINCT"
    return Index(
        item, name, sql, table.timeline, frozenset({table.id}), None,
        owner=table.owner, on=table.id, key=key, unique=True, nulls_distinct=nulls_distinct,
        constraint=True,
    )  # fmt: skip


def _named(column: TableColumn, catalog: Catalog) -> Sequence | None:
    """Return the sequence that a default ``nextval('…')`` names."""
    name = drawn_from(column.default)
    return None if name is None else catalog.get(name, Sequence)


def table_of(
    item: ObjectId, name: str, sql: str, timeline: Timeline | None, statement: CreateTable
) -> Table:
    """Return the table that a statement describes, but for the numbers of its sequences."""
    given = statement.columns
    columns = columns_of(given)
    names = [c.column.name for c in columns]
    key = tuple(names.index(column) for column in given.primary_key)
    made = Table(
        item, name, sql, timeline, frozenset(), statement.retain_history_ms,
        columns, key, given.key_enforced, given.key_name, says_unique=bool(given.uniques),
    )  # fmt: skip
    return replace(made, checks=checks_of(made, given.checks))


def columns_of(given: ColumnList) -> tuple[TableColumn, ...]:
    """Return the columns that a list describes, but for the numbers of their sequences."""
    return tuple(
        TableColumn(
            Column(c.name, c.type, c.nullable),
            c.default,
            c.length,
            c.fixed,
            c.default_text,
            identity=c.identity,
        )
        for c in given.columns
    )


def with_sequences(table: Table, drawn: Mapping[str, str]) -> Table:
    """Return a table whose columns draw their defaults from sequences, by their places."""
    if not drawn:
        return table
    columns = tuple(
        replace(c, sequence=ObjectId(drawn[str(at)])) if str(at) in drawn else c
        for at, c in enumerate(table.columns)
    )
    return replace(table, columns=columns)


def checks_of(table: Table, given: Values[CheckDefinition]) -> tuple[Check, ...]:
    """Return the conditions of a table, each with a name of its own, after those it has."""
    made = list(table.checks)
    named = [check.name for check in given if check.name is not None]
    for check in given:
        condition = _condition(table, check)
        name = check.name
        if name is None:
            taken = {c.name for c in made} | {*named, table.key_constraint}
            name = _free(table, Check("", condition, ""), taken)
        elif name in {c.name for c in made} or (table.primary_key and name == table.key_constraint):
            message = f'constraint "{name}" for relation "{table.name}" already exists'
            hint = "give it another name"
            raise StatementError(message, code="42710", hint=hint, position=check.position)
        made.append(Check(name, condition, check.text))
    return tuple(made)


def _free(table: Table, check: Check, taken: set[str]) -> str:
    used = check.columns
    column = f"_{table.schema[used[0]].name}" if len(used) == 1 else ""
    wanted = name = f"{table.name}{column}_check"
    number = 0
    while name in taken:
        number += 1
        name = f"{wanted}{number}"
    return name


def _condition(table: Table, check: CheckDefinition) -> Scalar:
    """Return the condition of a CHECK over the columns of a table."""
    planner = WritePlanner(NOTHING, ())
    rows = empty(table.schema)
    block = planner.block(rows, scope_of(table.name, table.schema))
    with placed(check.expression):
        try:
            condition = planner.condition(block, check.expression, "CHECK")
        except StatementError as error:
            if error.position is None:
                error.position = check.position
            raise
    if block.node is not rows:
        message = "cannot use subquery in check constraint"
        hint = "a view over both tables can show the rows that break a rule"
        raise NotSupported(message, hint=hint, position=check.position)
    return condition


def redefined(table: Table, catalog: Catalog, uniques: Iterable[UniqueKey] | None = None) -> Table:
    """Return a table that was altered, with the statement that makes one like it.

    ``uniques`` are its UNIQUE constraints, if they are not those of the catalog.
    """
    known = catalog.unique_keys(table) if uniques is None else uniques
    constraints = [key for key in known if key.index is not None and key.constraint]
    if table.primary_key:
        table = replace(table, key_name=table.key_constraint)
    parts = [_column_text(column, catalog) for column in table.columns]
    if table.primary_key:
        names = ", ".join(quoted(table.schema[at].name) for at in table.primary_key)
        enforced = "" if table.enforced else " NOT ENFORCED"
        name = quoted(table.key_constraint)
        parts.append(f"CONSTRAINT {name} PRIMARY KEY ({names}){enforced}")
    for unique in constraints:
        names = ", ".join(quoted(table.schema[at].name) for at in unique.columns)
        nulls = "" if unique.nulls_distinct else " NULLS NOT DISTINCT"
        parts.append(f"CONSTRAINT {quoted(unique.name)} UNIQUE{nulls} ({names})")
    parts += [f"CONSTRAINT {quoted(c.name)} CHECK ({c.text})" for c in table.checks]
    options = []
    if isinstance(table.timeline, User):
        options.append(f"timeline = {_string(table.timeline.name)}")
    if table.retain_history_ms is not None:
        options.append(f"RETAIN HISTORY FOR '{table.retain_history_ms} ms'")
    given = f" WITH ({', '.join(options)})" if options else ""
    sql = f"CREATE TABLE {quoted(table.name)} ({', '.join(parts)}){given}"
    return replace(table, sql=sql, says_unique=bool(constraints))


def _column_text(column: TableColumn, catalog: Catalog) -> str:
    parts = [quoted(column.column.name), str(column.declared)]
    if not column.column.nullable:
        parts.append("NOT NULL")
    if column.identity is not None:
        parts.append(f"GENERATED {column.identity.upper()} AS IDENTITY")
    elif column.sequence is not None:
        name = _string(quoted(catalog[column.sequence].name))
        parts.append(f"DEFAULT nextval({name})")
    elif column.default_text is not None:
        parts.append(f"DEFAULT {column.default_text}")
    return " ".join(parts)


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
