"""SELECT, with the time it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression, Parameter
    from reclock.sql.syntax.query import Query


@dataclass(frozen=True, slots=True)
class AsOf:
    """``AS OF [AT LEAST] t``; a time is a number of the timeline, or a date and time as text."""

    time: int | str | Parameter
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """``nextval(sequence)`` or ``setval(sequence, …)`` as an output of a query.

    ``place`` is the column that has the value, ``called`` the one that has setval's third argument.
    """

    function: str
    sequence: Expression
    place: int
    called: int | None = None


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """``query [AS OF [AT LEAST] t]``; its ``calls`` use the last ``hidden`` columns too."""

    query: Query
    as_of: AsOf | None = None
    calls: tuple[SequenceCall, ...] = ()
    hidden: int = 0
