"""BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Begin:
    """``BEGIN [TRANSACTION] [ISOLATION LEVEL …] [READ ONLY | READ WRITE]``."""

    isolation: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """``COMMIT`` or ``END``."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """``ROLLBACK`` or ``ABORT``."""
