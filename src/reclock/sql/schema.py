"""Columns and their order: what a relation looks like from outside.

Invariant: a schema is a tuple of columns; names may repeat (a join of two tables has two
``id``), so plans refer to columns by position and only text refers to them by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class Column:
    """A name, a type, and whether NULL may occur."""

    name: str
    type: Type
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' not null'}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a relation, by position."""

    columns: tuple[Column, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(c.name for c in self.columns)

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.columns + other.columns)

    def __getitem__(self, index: int) -> Column:
        return self.columns[index]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        return "(" + ", ".join(str(c) for c in self.columns) + ")"
