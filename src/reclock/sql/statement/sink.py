"""CREATE SINK and ALTER SINK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.source import FileConnection, Format, KafkaConnection
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class CreateSink:
    """``CREATE SINK name FROM relation INTO … [KEY (…)] FORMAT … ENVELOPE … WITH (…)``."""

    name: Name
    relation: Name
    connection: KafkaConnection | FileConnection
    format: Format
    envelope: str
    key: tuple[str, ...] = ()
    key_not_enforced: bool = False
    options: tuple[tuple[str, str], ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSink:
    """``ALTER SINK name SET FROM relation``."""

    name: Name
    relation: Name
