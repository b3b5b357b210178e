"""Columns as CREATE TABLE and CREATE SOURCE declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.sequence import SequenceOptions
    from reclock.sql.syntax.expression import Expression
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """``name type [NOT NULL] [DEFAULT expression]``; a primary-key column is not null.

    ``varchar(n)`` is text with a ``length``, ``char(n)`` one that is ``fixed``. ``sequence`` is
    what is said of its own sequence, if it has one; then ``identity`` is ``always``,
    ``by default``, or None for ``serial``.
    """

    name: str
    type: Type
    nullable: bool = True
    default: Expression | None = None
    position: int | None = None
    length: int | None = None
    fixed: bool = False
    default_text: str | None = None
    sequence: SequenceOptions | None = None
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """``[CONSTRAINT name] CHECK (expression)``; ``text`` is the expression as it was written."""

    expression: Expression
    text: str
    name: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class UniqueDefinition:
    """``[CONSTRAINT name] UNIQUE [NULLS [NOT] DISTINCT] (columns)``."""

    columns: tuple[str, ...]
    nulls_distinct: bool = True
    name: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnList:
    """``(columns [, PRIMARY KEY (…)] [, UNIQUE (…)] [, CHECK (…)])``.

    ``key_enforced`` is false for NOT ENFORCED; ``key_name`` None is a name made of the table's.
    """

    columns: tuple[ColumnDefinition, ...] = ()
    primary_key: tuple[str, ...] = ()
    key_enforced: bool = True
    key_name: str | None = None
    checks: tuple[CheckDefinition, ...] = ()
    uniques: tuple[UniqueDefinition, ...] = ()
