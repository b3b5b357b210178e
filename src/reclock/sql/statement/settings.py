"""SET, RESET and ALTER SYSTEM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetVariable:
    """``SET [SESSION | LOCAL] name = value``, ``RESET name | ALL``.

    A value of None resets to the default; a name of None is all.
    """

    name: str | None
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """``SET TRANSACTION …``, or with ``session`` ``SET SESSION CHARACTERISTICS AS TRANSACTION …``.

    What is None is left as it is.
    """

    isolation: str | None = None
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True, slots=True)
class AlterSystem:
    """``ALTER SYSTEM SET name = value | RESET name | RESET ALL``; name None is ALL."""

    name: str | None
    value: str | None
