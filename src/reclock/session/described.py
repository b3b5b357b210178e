"""What is known of a statement before it runs: its types, and what is prepared under a name.

Tests: tests/session/test_describe.py, test_prepared.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.schema import Schema
    from reclock.sql.statement import Parsed
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class Description:
    """The types of the parameters, and the columns of the rows; None if it gives none."""

    parameters: tuple[Type, ...]
    schema: Schema | None


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement and what it takes and gives; None is a text without a statement.

    ``declared`` are the OIDs that a client gave types by: it is told these, not others of the
    same type (a varchar is text here).
    """

    parsed: Parsed | None
    description: Description | None
    declared: tuple[int, ...] = ()
