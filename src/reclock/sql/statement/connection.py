"""CREATE SECRET, ALTER SECRET, CREATE CONNECTION."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.secret import Secret
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class CreateSecret:
    """``CREATE SECRET [IF NOT EXISTS] name AS 'value'``."""

    name: Name
    value: Secret
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSecret:
    """``ALTER SECRET name AS 'value'``."""

    name: Name
    value: Secret


@dataclass(frozen=True, slots=True)
class CreateConnection:
    """``CREATE CONNECTION [IF NOT EXISTS] name TO KAFKA | POSTGRES | … (option value, …)``.

    The value of an option is a text, or the name of a secret.
    """

    name: Name
    kind: str
    options: tuple[tuple[str, str | Name], ...] = field(repr=False)
    if_not_exists: bool = False
