"""Settings: of the system, and of a session.

``SETTINGS`` lists every setting with its default and what it means: SET, SHOW and the
documents share it. Values are kept as they are shown.

Tests: tests/coordinator/test_session.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reclock.config import format_duration, parse_duration
from reclock.errors import InvalidValue, NotSupported, UndefinedName
from reclock.time.select import Isolation


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's default, its meaning, and whether a session can set it for itself."""

    default: str
    description: str
    session: bool


SETTINGS: Final[dict[str, Setting]] = {
    "logical_compaction_window": Setting(
        "60s", "how much history objects keep unless they say otherwise", False
    ),
    "statement_timeout": Setting("60s", "how long a statement waits; 0 is for ever", True),
    "timestamp_interval": Setting("1s", "the time between two ticks", False),
    "transaction_isolation": Setting(
        Isolation.STRICT_SERIALIZABLE.value, "what reads see of other sessions' writes", True
    ),
}


@dataclass(slots=True)
class SystemSettings:
    """What holds for all sessions, in milliseconds."""

    timestamp_interval_ms: int = parse_duration(SETTINGS["timestamp_interval"].default)
    logical_compaction_window_ms: int = parse_duration(
        SETTINGS["logical_compaction_window"].default
    )


class SessionSettings:
    """What a session has set, over the defaults."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    @property
    def isolation(self) -> Isolation:
        """What reads see of other sessions' writes."""
        return Isolation(self.get("transaction_isolation"))

    @property
    def statement_timeout(self) -> float | None:
        """How many seconds a statement waits; None is for ever."""
        ms = parse_duration(self.get("statement_timeout"))
        return ms / 1_000 if ms else None

    def get(self, name: str) -> str:
        """Return the value of a setting as it is shown."""
        return self._given.get(name, known(name).default)

    def set(self, name: str, value: str | None) -> None:
        """Set a value; None resets it to the default."""
        if not known(name).session:
            message = f'parameter "{name}" cannot be set for a session'
            raise NotSupported(message, hint=f"it is {known(name).default} for all sessions")
        if value is None:
            self._given.pop(name, None)
        else:
            self._given[name] = _checked(name, value)


def known(name: str) -> Setting:
    """Return the setting of that name."""
    found = SETTINGS.get(name)
    if found is None:
        message = f'unrecognized configuration parameter "{name}"'
        hint = "known parameters: " + ", ".join(SETTINGS)
        raise UndefinedName(message, code="42704", hint=hint)
    return found


def _checked(name: str, value: str) -> str:
    if name == "transaction_isolation":
        levels = [level.value for level in Isolation]
        if value.lower() in levels:
            return value.lower()
        message = f'invalid value for parameter "{name}": "{value}"'
        raise InvalidValue(message, hint=f"write one of {', '.join(levels)}")
    return format_duration(parse_duration(value))
