"""What ALTER TABLE makes of a table: each action gives the next one, and may move its columns.

An action that adds or drops columns, or the primary key, has the rows written anew; a condition
that is new is looked for in those that are there.

Tests: tests/session/test_alter_table.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reclock.catalog.serial.define import sequence_of
from reclock.catalog.serial.item import OwnedBy, Position, Sequence
from reclock.catalog.unique import UniqueKey
from reclock.dataflow.values import from_python
from reclock.engine.constraints import check_conditions, refuse_repeated
from reclock.errors import ConstraintViolation, NotSupported, StatementError, UndefinedName
from reclock.ids import ObjectId
from reclock.session.define_table import checks_of, columns_of, unique_name
from reclock.session.dml.target import assigned
from reclock.session.sequence_functions import drawn_from, named
from reclock.sql.names import quoted
from reclock.sql.parse.columns import check_keyable
from reclock.sql.parse.dialect import tokenize
from reclock.sql.parse.fragment import expression_of
from reclock.sql.statement.alter_table import (
    AddColumn,
    AddConstraint,
    DropColumn,
    DropConstraint,
    RenameColumn,
    SetDefault,
    SetNullable,
)
from reclock.sql.statement.column import CheckDefinition

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Check, Table, TableColumn
    from reclock.engine.core import Core
    from reclock.session.dml.defaults import Defaults
    from reclock.sql.statement.alter_table import Alteration
    from reclock.sql.statement.column import UniqueDefinition
    from reclock.sql.syntax.expression import Expression

READING = (AddColumn, DropColumn, AddConstraint, SetNullable)
"""Actions that need the rows that are there."""


@dataclass
class Altering:
    """A table on its way; ``places`` says where the columns are now that it had at first."""

    core: Core
    catalog: Catalog
    defaults: Defaults
    table: Table
    rows: list[pa.Array] | None = None
    places: dict[int, int] = field(default_factory=dict)
    anew: bool = False
    gone: str | None = None
    cascade: bool = False
    made: list[Sequence] = field(default_factory=list)
    removed: list[ObjectId] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    uniques: list[UniqueKey] = field(default_factory=list)
    """Its unique keys but for the primary one; those that are new have no index yet."""

    def apply(self, action: Alteration) -> None:
        """Do one action."""
        match action:
            case AddColumn():
                self._add(action)
            case DropColumn():
                self._drop(action)
            case SetDefault(column, default, text):
                self._default(column, default, text)
            case SetNullable(column, nullable):
                self._nullable(column, nullable)
            case AddConstraint():
                self._constrain(action)
            case DropConstraint(name, if_exists):
                self._unconstrain(name, if_exists)
            case RenameColumn(column, to):
                self._rename(column, to)

    def _at(self, column: str) -> int:
        names = self.table.schema.names
        if column not in names:
            message = f'column "{column}" of relation "{self.table.name}" does not exist'
            raise UndefinedName(message, hint=f"there are the columns {', '.join(names)}")
        return names.index(column)

    def _check_free(self, name: str) -> None:
        if name in self.table.schema.names:
            message = f'column "{name}" of relation "{self.table.name}" already exists'
            raise StatementError(message, code="42701", hint="choose another name")

    @property
    def _count(self) -> int:
        assert self.rows is not None
        return len(self.rows[0])

    def _add(self, action: AddColumn) -> None:
        (given,) = action.columns.columns
        table = self.table
        if action.if_not_exists and given.name in table.schema.names:
            said = f'column "{given.name}" of relation "{table.name}" already exists, skipping'
            self.notices.append(said)
            return
        self._check_free(given.name)
        (column,) = columns_of(action.columns)
        at = len(table.columns)
        values: pa.Array | None = None
        if given.sequence is not None:
            options = given.sequence
            options = options if options.type else replace(options, type=given.type)
            item = ObjectId(f"u{int(self.catalog.version) + 1 + len(self.made)}")
            taken = {s.name for s in self.made}
            name = self.catalog.free_name(f"{table.name}_{given.name}_seq", taken)
            sequence = sequence_of(item, name, options)
            numbers, after = sequence.taken(Position(sequence.start, called=False), self._count)
            values = from_python(list(numbers), given.type)
            owned = OwnedBy(table.id, at + 1)
            begun = after if self._count else None
            self.made.append(replace(sequence, owned_by=owned, begun=begun))
            column = replace(column, sequence=item)
        elif (named_by := drawn_from(column.default)) is not None:
            column = replace(column, sequence=named(named_by, self.catalog).id)
        self.table = replace(table, columns=(*table.columns, column))
        assigned(self.table, at, None, self.catalog)  # its default must be of its type
        if values is None:
            values = self.defaults.column(self.table, at, self._count, self.catalog)
        assert self.rows is not None
        self.rows.append(values)
        self.anew = True
        if not column.column.nullable:
            self._refuse_null(at)
        constraint = replace(action.columns, columns=())
        if constraint.primary_key or constraint.checks or constraint.uniques:
            self._constrain(AddConstraint(constraint))

    def _drop(self, action: DropColumn) -> None:
        table = self.table
        if action.if_exists and action.column not in table.schema.names:
            said = f'column "{action.column}" of relation "{table.name}" does not exist, skipping'
            self.notices.append(said)
            return
        at = self._at(action.column)
        if len(table.columns) == 1:
            message = "a table without columns is not supported"
            raise NotSupported(message, hint="DROP TABLE, or add another column first")
        self.gone, self.cascade = action.column, self.cascade or action.cascade
        moved = {old: old - (old > at) for old in range(len(table.columns)) if old != at}
        key = () if at in table.primary_key else tuple(moved[k] for k in table.primary_key)
        kept = [check for check in table.checks if at not in check.columns]
        self.uniques = [
            replace(key, columns=tuple(moved[i] for i in key.columns))
            for key in self.uniques
            if at not in key.columns
        ]
        columns = tuple(c for i, c in enumerate(table.columns) if i != at)
        made = replace(
            table, columns=columns, primary_key=key, key_name=table.key_name if key else None,
            checks=(),
        )  # fmt: skip
        comments = {n: text for n, text in table.comments.items() if n != action.column}
        self.table = replace(made, checks=_again(made, kept), comments=comments)
        self.removed += [
            s.id for s in self.catalog.of_kind(Sequence) if s.owned_by == (table.id, at + 1)
        ]
        assert self.rows is not None
        del self.rows[at]
        self.places = {old: moved[now] for old, now in self.places.items() if now != at}
        self.anew = True

    def _default(self, column: str, default: Expression | None, text: str | None) -> None:
        at = self._at(column)
        known = self.table.columns[at]
        if known.identity is not None:
            message = f'column "{column}" of relation "{self.table.name}" is an identity column'
            raise StatementError(message, code="42601", hint="it has numbers of its own")
        changed = replace(known, default=default, default_text=text, sequence=None)
        if (name := drawn_from(changed.default)) is not None:
            changed = replace(changed, sequence=named(name, self.catalog).id)
        self._replace(at, changed)
        assigned(self.table, at, None, self.catalog)

    def _nullable(self, column: str, nullable: bool) -> None:
        at = self._at(column)
        known = self.table.columns[at]
        if nullable and at in self.table.primary_key:
            message = f'column "{column}" is in a primary key'
            raise StatementError(message, code="42P16", hint="drop the constraint first")
        if nullable and known.identity is not None:
            message = f'column "{column}" of relation "{self.table.name}" is an identity column'
            raise StatementError(message, code="42601", hint="its numbers are never NULL")
        self._replace(at, replace(known, column=replace(known.column, nullable=nullable)))
        if not nullable:
            self._refuse_null(at)

    def _replace(self, at: int, column: TableColumn) -> None:
        columns = list(self.table.columns)
        columns[at] = column
        self.table = replace(self.table, columns=tuple(columns))

    def _refuse_null(self, at: int) -> None:
        assert self.rows is not None
        if self.rows[at].null_count:
            name = self.table.schema[at].name
            message = f'column "{name}" of relation "{self.table.name}" contains null values'
            hint = "UPDATE these rows first, or give a DEFAULT"
            raise ConstraintViolation(message, code="23502", hint=hint)

    def _constrain(self, action: AddConstraint) -> None:
        given, table = action.constraint, self.table
        if given.primary_key:
            self._key(given.primary_key, given.key_name, enforced=given.key_enforced)
        for unique in given.uniques:
            self._unique(unique)
        if given.checks:
            before = len(table.checks)
            self.table = replace(self.table, checks=checks_of(self.table, given.checks))
            assert self.rows is not None
            for check in self.table.checks[before:]:
                one = replace(self.table, checks=(check,))
                try:
                    check_conditions(self.core.engine, one, self.rows)
                except ConstraintViolation as error:
                    message = f'check constraint "{check.name}" of relation "{table.name}" '
                    message += "is violated by some row"
                    raise ConstraintViolation(
                        message, detail=error.detail, hint=error.hint, code="23514"
                    ) from error

    def _unique(self, given: UniqueDefinition) -> None:
        for column in given.columns:
            if column not in self.table.schema.names:
                message = f'column "{column}" named in key does not exist'
                hint = f"there are the columns {', '.join(self.table.schema.names)}"
                raise UndefinedName(message, hint=hint, position=given.position)
            at = self._at(column)
            check_keyable(column, self.table.schema[at].type, given.position)
        taken = {key.name for key in self.uniques}
        name = unique_name(self.table, given, self.catalog, taken)
        columns = tuple(self._at(column) for column in given.columns)
        key = UniqueKey(name, columns, None, given.nulls_distinct)
        assert self.rows is not None
        refuse_repeated(self.table, key, [self.rows[at] for at in columns])
        self.uniques.append(key)

    def _key(self, names: tuple[str, ...], name: str | None, *, enforced: bool) -> None:
        table = self.table
        if table.primary_key:
            message = f'multiple primary keys for table "{table.name}" are not allowed'
            raise StatementError(message, code="42P16", hint="drop the one that is there first")
        for column in names:
            if column not in table.schema.names:
                message = f'column "{column}" of relation "{table.name}" does not exist'
                raise UndefinedName(message, hint="add it first")
        key = tuple(self._at(column) for column in names)
        for at in key:
            known = self.table.columns[at]
            self._replace(at, replace(known, column=replace(known.column, nullable=False)))
        self.table = replace(self.table, primary_key=key, enforced=enforced, key_name=name)
        if enforced:
            of = UniqueKey(self.table.key_constraint, key)
            assert self.rows is not None
            refuse_repeated(self.table, of, [self.rows[at] for at in key])
        for at in key:
            self._refuse_null(at)
        self.anew = True

    def _unconstrain(self, name: str, if_exists: bool) -> None:
        table = self.table
        if table.primary_key and name == table.key_constraint:
            self.table = replace(table, primary_key=(), key_name=None, enforced=True)
            self.anew = True
            return
        kept = tuple(check for check in table.checks if check.name != name)
        if len(kept) == len(table.checks):
            message = f'constraint "{name}" of relation "{table.name}" does not exist'
            if not if_exists:
                raise UndefinedName(message, code="42704", hint="\\d shows those there are")
            self.notices.append(f"{message}, skipping")
        self.table = replace(table, checks=kept)

    def _rename(self, column: str, to: str) -> None:
        names = self.table.schema.names
        if column not in names:
            message = f'column "{column}" does not exist'
            raise UndefinedName(message, hint=f"there are the columns {', '.join(names)}")
        self._check_free(to)
        at = names.index(column)
        known = self.table.columns[at]
        self._replace(at, replace(known, column=replace(known.column, name=to)))
        checks = tuple(
            replace(check, text=renamed(check.text, column, to)) if at in check.columns else check
            for check in self.table.checks
        )
        comments = {to if n == column else n: text for n, text in self.table.comments.items()}
        self.table = replace(self.table, checks=checks, comments=comments)


def _again(table: Table, checks: list[Check]) -> tuple[Check, ...]:
    """Return conditions over the columns that are left, which have moved."""
    given = [
        CheckDefinition(expression_of(tokenize(c.text), c.text), c.text, c.name) for c in checks
    ]
    return checks_of(table, given)


def renamed(text: str, column: str, to: str) -> str:
    """Return a condition in which a column has another name.

    >>> renamed("a > 1 AND a(b) < t.A", "a", "New")
    '"New" > 1 AND a(b) < t."New"'
    """
    made, done = "", 0
    tokens = tokenize(text)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        written = text[token.start : token.end + 1]
        name = token.text if written.startswith('"') else token.text.lower()
        calls = after is not None and after.text in {"(", "."}
        if name == column and not calls and not written.startswith("'"):
            made += text[done : token.start] + quoted(to)
            done = token.end + 1
    return made + text[done:]
