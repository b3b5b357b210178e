"""Settings: of the system, durable and the same for all; of a session, over the system's.

``SETTINGS`` is the one list of settings: SET, ALTER SYSTEM, SHOW, ``reclock.settings`` and
docs/settings.md share it. Values are kept as they are shown.

What ALTER SYSTEM set is stored in the catalog, one record per setting::

    "setting/timestamp_interval": {"v": 1, "kind": "setting", "value": "250ms"}

so it changes in one durable append, with the world, or not at all; a setting without a record has
its default. A session's value hides the system's until it is reset, and ends with the session.
Every change is in force at once: a query gives the current value.

Tests: tests/catalog/test_settings.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Final

from reclock.catalog.client_settings import CLIENT_SETTINGS
from reclock.config import format_duration, parse_duration
from reclock.dataflow.placement import Execution
from reclock.errors import Corrupt, Error, InvalidValue, NewerFormat, NotSupported, UndefinedName
from reclock.ids import ObjectId
from reclock.sql.zone import DEFAULT
from reclock.time.select import Isolation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reclock.durable import catalog_store
    from reclock.durable.keyed import Json

KIND: Final = "setting"
VERSION: Final = 1


def duration(text: str) -> str:
    """Return a duration as it is shown."""
    return format_duration(parse_duration(text))


def positive_duration(text: str) -> str:
    """Return a duration as it is shown; it must not be 0."""
    if parse_duration(text) == 0:
        message = f'"{text}" is not more than 0'
        raise InvalidValue(message, hint="write 1ms or more")
    return duration(text)


def timeout(text: str) -> str:
    """Return a duration as it is shown; a number alone is of milliseconds, as in PostgreSQL."""
    return duration(f"{text}ms" if text.strip().isdecimal() else text)


def truth(text: str) -> str:
    """Return true or false."""
    name = text.lower().strip()
    if name not in {"true", "false", "on", "off"}:
        message = f'"{text}" is neither true nor false'
        raise InvalidValue(message, hint="write true or false")
    return "true" if name in {"true", "on"} else "false"


_WEAKER: Final = ("repeatable read", "read committed", "read uncommitted")
_OTHER_NAMES: Final = {"default_transaction_isolation": "transaction_isolation"}


def isolation(text: str) -> str:
    """Return the name of an isolation level."""
    levels = [level.value for level in Isolation]
    name = " ".join(text.lower().split())
    if name in _WEAKER:  # what was asked for, and more
        return Isolation.STRICT_SERIALIZABLE.value
    if name not in levels:
        message = f'"{text}" is no isolation level'
        raise InvalidValue(message, hint=f"write one of {', '.join(levels)}")
    return name


def execution(text: str) -> str:
    """Return the name of a place where work runs."""
    name = text.lower().strip()
    places = [one.value for one in Execution]
    if name not in places:
        message = f'"{text}" is no place where work runs'
        raise InvalidValue(message, hint=f"write one of {', '.join(places)}")
    return name


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its default, what it means, what its values are.

    ``check`` returns a value as it is shown, or says what is wrong with it. With ``session``
    a session can set it for itself.
    """

    default: str
    description: str
    values: str
    check: Callable[[str], str]
    session: bool = False


SETTINGS: Final[Mapping[str, Setting]] = {
    "compute_replica_expiration_offset": Setting(
        "0",
        "how long a process keeps future retractions for, from its start on; 0 is for ever",
        "a duration",
        duration,
    ),
    "execution": Setting(
        "auto",
        "where ticks, first loads, merges and reading of sources run: auto is in the driver if that"
        " takes no longer than a tenth of a second, else in Spark tasks",
        "auto, driver or spark",
        execution,
    ),
    "expiration_renewal": Setting(
        "true",
        "whether a process that expires derives the next retractions before it does, and goes on",
        "true or false",
        truth,
    ),
    "idle_in_transaction_session_timeout": Setting(
        "0",
        "how long a server lets a client leave a transaction open and say nothing; 0 is for ever",
        "a duration",
        timeout,
        session=True,
    ),
    "idle_session_timeout": Setting(
        "0",
        "how long a server lets a client say nothing; 0 is for ever",
        "a duration",
        timeout,
        session=True,
    ),
    "logical_compaction_window": Setting(
        "60s", "how much history objects keep unless they say otherwise", "a duration", duration
    ),
    "statement_timeout": Setting(
        "60s",
        "how long a statement waits, computes, or is not read; 0 is for ever",
        "a duration",
        timeout,
        session=True,
    ),
    "timestamp_interval": Setting(
        "1s", "the time between two ticks", "a duration, 1ms or more", positive_duration
    ),
    "transaction_isolation": Setting(
        Isolation.STRICT_SERIALIZABLE.value,
        "what reads see of other sessions' writes",
        "strict serializable or serializable",
        isolation,
        session=True,
    ),
}


@dataclass(frozen=True)
class Values:
    """What ALTER SYSTEM has set, at one moment; all else has its default."""

    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: catalog_store.Catalog) -> Values:
        """Return the values that a stored catalog has."""
        return cls(
            {
                key.removeprefix(f"{KIND}/"): _stored(key, record)
                for key, record in stored.items().items()
                if is_setting(record)
            }
        )

    @cached_property
    def timestamp_interval_ms(self) -> int:
        """The time between two ticks."""
        return parse_duration(self.get("timestamp_interval"))

    @cached_property
    def logical_compaction_window_ms(self) -> int:
        """How much history an object keeps that does not say otherwise."""
        return parse_duration(self.get("logical_compaction_window"))

    @cached_property
    def expiration_offset_ms(self) -> int:
        """How long a process keeps future retractions for; 0 is for ever."""
        return parse_duration(self.get("compute_replica_expiration_offset"))

    @cached_property
    def expiration_renewal(self) -> bool:
        """Whether a process derives the next retractions before it expires."""
        return self.get("expiration_renewal") == "true"

    def get(self, name: str) -> str:
        """Return the value of a setting as it is shown."""
        return self.given.get(name, known(name).default)

    def changed(self, name: str | None, value: str | None) -> Values:
        """Return the values after a change: None as value resets, as name resets all."""
        if name is None:
            return Values()
        known(name)
        kept = {n: v for n, v in self.given.items() if n != name}
        return Values(kept if value is None else {**kept, name: checked(name, value)})

    def records(self, before: Values) -> dict[ObjectId, Json | None]:
        """Return the records to change for these values to follow ``before``."""
        return {
            ObjectId(f"{KIND}/{name}"): None if value is None else _record(value)
            for name in sorted(self.given.keys() | before.given.keys())
            if (value := self.given.get(name)) != before.given.get(name)
        }


class SystemSettings:
    """What is in force for the system now; ``values`` is replaced with the world."""

    def __init__(self, values: Values | None = None) -> None:
        self.values = values or Values()

    @property
    def timestamp_interval_ms(self) -> int:
        """The time between two ticks."""
        return self.values.timestamp_interval_ms

    @property
    def logical_compaction_window_ms(self) -> int:
        """How much history an object keeps that does not say otherwise."""
        return self.values.logical_compaction_window_ms

    @property
    def execution(self) -> Execution:
        """Where ticks, first loads and reading of sources run."""
        return Execution(self.values.get("execution"))


class SessionSettings:
    """What a session has set, over what is in force for the system."""

    def __init__(self, system: SystemSettings) -> None:
        self._system = system
        self._given: dict[str, str] = {}
        self._start: dict[str, str] = {}
        self.version = 0
        """How often something was set: what was read before is as it was, if this is."""

    def start(self) -> None:
        """Take what is set now for what RESET goes back to: the client began with it."""
        self._start = dict(self._given)

    def copy(self) -> SessionSettings:
        """Return the same settings, to be changed apart from these."""
        made = SessionSettings(self._system)
        made._given, made._start = dict(self._given), self._start
        made.version = self.version
        return made

    @property
    def isolation(self) -> Isolation:
        """What reads see of other sessions' writes."""
        return Isolation(self.get("transaction_isolation"))

    @property
    def time_zone(self) -> str:
        """The zone in which local times are."""
        return self._given.get("timezone", DEFAULT)

    @property
    def statement_timeout(self) -> float | None:
        """How many seconds a statement waits; None is for ever."""
        return self._seconds("statement_timeout")

    @property
    def idle_session_timeout(self) -> float | None:
        """How many seconds a client may say nothing; None is for ever."""
        return self._seconds("idle_session_timeout")

    @property
    def idle_in_transaction_timeout(self) -> float | None:
        """How many seconds a client may say nothing in a transaction; None is for ever."""
        return self._seconds("idle_in_transaction_session_timeout")

    def _seconds(self, name: str) -> float | None:
        ms = parse_duration(self.get(name))
        return ms / 1_000 if ms else None

    def get(self, name: str) -> str:
        """Return the value of a setting as it is shown."""
        name = _OTHER_NAMES.get(name, name)
        given = self._given.get(name)
        if given is not None:
            return given
        client = CLIENT_SETTINGS.get(name)
        return self._system.values.get(name) if client is None else client.default

    @property
    def is_read_only(self) -> bool:
        """Whether what is written outside of transactions, and in those to come, is refused."""
        return self.get("default_transaction_read_only") == "on"

    def set(self, name: str | None, value: str | None) -> None:
        """Set a value; None resets it to what it began with, and a name of None all of them."""
        if name is None:
            self._given = dict(self._start)
            self.version += 1
            return
        name = _OTHER_NAMES.get(name, name)
        if name not in CLIENT_SETTINGS and not known(name).session:
            message = f'parameter "{name}" cannot be set for a session'
            raise NotSupported(message, hint=f"ALTER SYSTEM SET {name} sets it for all sessions")
        if value is not None:
            self._given[name] = checked(name, value)
        elif name in self._start:
            self._given[name] = self._start[name]
        else:
            self._given.pop(name, None)
        self.version += 1


def known(name: str) -> Setting:
    """Return the setting of that name."""
    found = SETTINGS.get(name)
    if found is None:
        near = get_close_matches(name, SETTINGS, n=1)
        message = f'unrecognized configuration parameter "{name}"'
        listed = "known parameters: " + ", ".join(SETTINGS)
        hint = f'perhaps you meant "{near[0]}"' if near else listed
        raise UndefinedName(message, code="42704", hint=hint)
    return found


def checked(name: str, value: str) -> str:
    """Return a value for a setting as it is shown, or say why it is none."""
    try:
        return (CLIENT_SETTINGS.get(name) or known(name)).check(value)
    except InvalidValue as error:
        message = f'invalid value for parameter "{name}": "{value}"'
        raise InvalidValue(message, detail=error.message, hint=error.hint) from error


def is_setting(record: Json) -> bool:
    """Return whether a record of the catalog is that of a setting."""
    return record.get("kind") == KIND


def _record(value: str) -> Json:
    return {"v": VERSION, "kind": KIND, "value": value}


def _stored(key: str, record: Json) -> str:
    """Return the value of a record; a setting that is not known comes from a later version."""
    name = key.removeprefix(f"{KIND}/")
    if name not in SETTINGS or record.get("v", 0) > VERSION:
        message = f'setting "{name}" is stored in a way that this version does not know'
        raise NewerFormat(message, hint="open the state with a later reclock")
    try:
        return checked(name, record["value"])
    except (KeyError, AttributeError, TypeError, Error) as error:
        message = f'setting "{name}" cannot be read'
        raise Corrupt(message, detail=f"{record!r:.200}") from error
