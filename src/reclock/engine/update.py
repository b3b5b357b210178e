"""The items of a subscription: updates, and progress rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Update:
    """One row that came or went; or, if ``progressed``, how far everything has been given.

    ``row`` has the values as SELECT gives them. With an envelope there is no ``diff``;
    ``state`` says what became of the key: 'upsert', 'delete' or 'key_violation', and in
    Debezium's also 'insert'.
    """

    timestamp: Timestamp
    diff: int | None = None
    row: tuple[Any, ...] | None = None
    progressed: bool = False
    state: str | None = None
