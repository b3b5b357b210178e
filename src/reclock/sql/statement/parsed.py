"""A statement with the text that it was written as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, its text, where that text begins (from 1), and the greatest n of its $n."""

    statement: Statement
    text: str
    position: int
    parameters: int = 0
