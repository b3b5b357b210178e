"""What a statement runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.coordinator.core import Core
    from reclock.coordinator.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class Context:
    """The core, the session's settings, the statement's text and the values of $1, $2, …."""

    core: Core
    settings: SessionSettings
    text: str
    parameters: tuple[object, ...] = ()
