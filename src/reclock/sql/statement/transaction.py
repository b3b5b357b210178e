"""BEGIN, COMMIT, ROLLBACK and savepoints."""

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


@dataclass(frozen=True, slots=True)
class Savepoint:
    """``SAVEPOINT name``."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    """``RELEASE [SAVEPOINT] name``."""

    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    """``ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name``."""

    name: str
