"""CREATE, ALTER and DROP of roles; GRANT and REVOKE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reclock.secret import Secret
    from reclock.sql.syntax.expression import Name

PRIVILEGES: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
"""What may be granted on an object; on the database it is CREATE."""


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """What is said of a role; None is nothing. ``forget`` takes the password away."""

    login: bool | None = None
    superuser: bool | None = None
    password: Secret | None = None
    forget: bool = False


@dataclass(frozen=True, slots=True)
class CreateRole:
    """``CREATE ROLE name [WITH] …``; ``CREATE USER`` is a role that may log in."""

    name: str
    options: RoleOptions
    position: int


@dataclass(frozen=True, slots=True)
class AlterRole:
    """``ALTER ROLE name [WITH] …``."""

    name: str
    options: RoleOptions
    position: int


@dataclass(frozen=True, slots=True)
class DropRole:
    """``DROP ROLE [IF EXISTS] name, …``."""

    names: tuple[str, ...]
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True)
class Grant:
    """``GRANT privileges ON object, … TO role, …``, or ``REVOKE … FROM``.

    ``on`` None is the database, whose only privilege is CREATE.
    """

    privileges: tuple[str, ...]
    on: tuple[Name, ...] | None
    roles: tuple[str, ...]
    position: int
    revoke: bool = False
