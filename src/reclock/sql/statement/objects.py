"""Statements about objects whatever their kind: DROP, SHOW, ALTER … SET (…), OWNER TO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Name

KINDS = (
    "table", "view", "materialized view", "index", "source", "sink", "sequence", "connection",
    "secret",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drop:
    """``DROP kind [IF EXISTS] names [CASCADE | RESTRICT]``."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """``SHOW TABLES``, ``SHOW COLUMNS FROM t``, ``SHOW CREATE VIEW v``, ``SHOW setting``.

    ``what`` is the plural of a kind, ``objects``, ``columns``, ``indexes``, ``create`` (then
    ``kind`` says of what), ``all``, ``isolation level``, or ``setting``; ``of`` names the object
    or the setting.
    """

    what: str
    of: Name | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class AlterOwner:
    """``ALTER kind name OWNER TO role``."""

    kind: str
    name: Name
    role: str
    position: int


@dataclass(frozen=True, slots=True)
class AlterRetainHistory:
    """``ALTER kind name SET (RETAIN HISTORY FOR '…') | RESET (RETAIN HISTORY)``; None resets."""

    kind: str
    name: Name
    retain_history_ms: int | None
