"""ALTER TABLE, and ALTER … RENAME TO of any object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.column import ColumnList
    from reclock.sql.syntax.expression import Expression, Name


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``ADD [COLUMN] [IF NOT EXISTS] column type …``."""

    columns: ColumnList
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """``DROP [COLUMN] [IF EXISTS] column [CASCADE | RESTRICT]``."""

    column: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """``ALTER [COLUMN] column SET DEFAULT expression | DROP DEFAULT``; None drops."""

    column: str
    default: Expression | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class SetNullable:
    """``ALTER [COLUMN] column SET NOT NULL | DROP NOT NULL``."""

    column: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ADD [CONSTRAINT name] PRIMARY KEY (…) | CHECK (…)``."""

    constraint: ColumnList


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """``DROP CONSTRAINT [IF EXISTS] name [CASCADE | RESTRICT]``."""

    constraint: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``RENAME [COLUMN] column TO name``."""

    column: str
    to: str


Alteration = (
    AddColumn
    | DropColumn
    | SetDefault
    | SetNullable
    | AddConstraint
    | DropConstraint
    | RenameColumn
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """``ALTER TABLE [IF EXISTS] [ONLY] name action, …``."""

    name: Name
    actions: tuple[Alteration, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """``ALTER kind [IF EXISTS] name RENAME TO name``."""

    kind: str
    name: Name
    to: str
    if_exists: bool = False
