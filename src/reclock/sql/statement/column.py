"""Columns as CREATE TABLE and CREATE SOURCE declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """``name type [NOT NULL] [DEFAULT literal]``; a primary-key column is not null.

    ``varchar(n)`` is text with a ``length``.
    """

    name: str
    type: Type
    nullable: bool = True
    default: Expression | None = None
    position: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnList:
    """``(columns [, PRIMARY KEY (…)])``; ``key_enforced`` is false for NOT ENFORCED."""

    columns: tuple[ColumnDefinition, ...] = ()
    primary_key: tuple[str, ...] = ()
    key_enforced: bool = True
