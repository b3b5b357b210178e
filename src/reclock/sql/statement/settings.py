"""SET, RESET and ALTER SYSTEM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetVariable:
    """``SET [SESSION | LOCAL] name = value``, ``SET TRANSACTION ISOLATION LEVEL …``, ``RESET``.

    A value of None resets to the default.
    """

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class AlterSystem:
    """``ALTER SYSTEM SET name = value | RESET name | RESET ALL``; name None is ALL."""

    name: str | None
    value: str | None
