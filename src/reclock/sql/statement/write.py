"""INSERT, UPDATE, DELETE and TRUNCATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression, Name
    from reclock.sql.syntax.query import Query


@dataclass(frozen=True, slots=True)
class Insert:
    """``INSERT INTO name [(columns)] query``; DEFAULT may stand in VALUES.

    ``query`` None is ``DEFAULT VALUES``.
    """

    name: Name
    columns: tuple[str, ...]
    query: Query | None


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE name [AS alias] SET column = expression, … [WHERE …]``."""

    name: Name
    alias: str | None
    assignments: tuple[tuple[str, Expression], ...]
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM name [AS alias] [WHERE …]``."""

    name: Name
    alias: str | None
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """``TRUNCATE [TABLE] [ONLY] names [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]``."""

    names: tuple[Name, ...]
