"""SELECT, with the time it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Parameter
    from reclock.sql.syntax.query import Query


@dataclass(frozen=True, slots=True)
class AsOf:
    """``AS OF [AT LEAST] t``; a time is a number of the timeline, or a date and time as text."""

    time: int | str | Parameter
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """``query [AS OF [AT LEAST] t]``."""

    query: Query
    as_of: AsOf | None = None
