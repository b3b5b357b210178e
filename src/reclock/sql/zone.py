"""Time zones: their names as PostgreSQL takes them, and the one that a statement is read in.

``named`` reads what ``SET TIME ZONE`` is given: a name of the IANA database in any case, hours east
of Greenwich (``2``, ``-3.5``), or POSIX's form without summer time (``UTC-2``, ``<+02>-02``), whose
numbers count west. It returns the name under which PostgreSQL shows the zone.

``zone()`` is the zone of the statement that is planned, or whose values are read or written, in
this thread; outside of ``in_zone`` it is UTC. It is not passed from hand to hand, because a cast
in the middle of an expression needs it. What is kept (a view, an index, a sink) is planned in UTC:
its rows are not one session's.

A local time that is there twice, as clocks go back, is the later one; one that is not there counts
by the offset before the jump. So does PostgreSQL.

Tests: tests/sql/test_zone.py.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

DEFAULT: Final = "UTC"

_POSIX: Final = re.compile(
    r"(?:<([A-Za-z0-9+:-]+)>|([A-Za-z]{3,}))([+-]?)(\d{1,2})(?::(\d\d))?(?::(\d\d))?"
)
_HOURS: Final = re.compile(r"([+-]?)(\d{1,2})(?:\.(\d+))?")
_CLOCK: Final = re.compile(r"([+-]?)(\d{1,2}):(\d\d)(?::(\d\d))?")
_NOT_ZONES: Final = {"Factory", "localtime", "posixrules"}

_SAME: Final = {"Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"}
"""Other names of UTC, which cost no conversion."""

_ZONE: ContextVar[str] = ContextVar("zone", default=DEFAULT)


def zone() -> str:
    """Return the name of the zone that local times are in."""
    return _ZONE.get()


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Have local times be those of a zone that ``named`` has returned."""
    before = _ZONE.set(DEFAULT if name in _SAME else name)
    try:
        yield
    finally:
        _ZONE.reset(before)


def here(work: Callable[..., T]) -> Callable[..., T]:
    """Return the same work, to be done later in the zone of now."""
    name = zone()

    def done(*arguments: object) -> T:
        with in_zone(name):
            return work(*arguments)

    return done


@lru_cache(maxsize=1_024)
def named(text: str) -> str:
    """Return the name of a zone as it is shown.

    >>> named("europe/berlin"), named("-7"), named("5.5"), named("UTC-2")
    ('Europe/Berlin', '<-07>+07', '<+05:30>-05:30', 'UTC-2')
    """
    given = text.strip()
    known = _names().get(given.lower())
    if known is not None:
        return known
    for form in (_HOURS, _CLOCK):
        if found := form.fullmatch(given):
            return _of_seconds(_east(form, found))
    if _POSIX.fullmatch(given) and abs(_west(given)) < 24 * 3_600:
        return given
    message = f'time zone "{text}" not recognized'
    hint = "write a name such as Europe/Berlin, or hours east of Greenwich"
    raise InvalidValue(message, hint=hint)


@cache
def _names() -> dict[str, str]:
    names = (available_timezones() | {"UTC", "GMT"}) - _NOT_ZONES
    return {name.lower(): name for name in names} | {"z": "UTC", "zulu": "Zulu"}


def _east(form: re.Pattern[str], found: re.Match[str]) -> int:
    sign = -1 if found[1] == "-" else 1
    seconds = int(found[2]) * 3_600
    if form is _HOURS:
        seconds += round(float(f"0.{found[3] or 0}") * 3_600)
    else:
        seconds += int(found[3]) * 60 + int(found[4] or 0)
    if seconds >= 24 * 3_600:
        message = f'time zone "{found[0]}" not recognized'
        raise InvalidValue(message, hint="an offset is less than 24 hours")
    return sign * seconds


def _of_seconds(east: int) -> str:
    """Return PostgreSQL's name of an offset: ``<+02>-02``."""
    mark, other = ("+", "-") if east >= 0 else ("-", "+")
    clock = _clock(abs(east))
    return f"<{mark}{clock}>{other}{clock}"


def _clock(seconds: int) -> str:
    hours, minutes, rest = seconds // 3_600, seconds // 60 % 60, seconds % 60
    text = f"{hours:02}"
    if minutes or rest:
        text += f":{minutes:02}"
    return text + (f":{rest:02}" if rest else "")


def _west(name: str) -> int:
    found = _POSIX.fullmatch(name)
    assert found is not None
    seconds = int(found[4]) * 3_600 + int(found[5] or 0) * 60 + int(found[6] or 0)
    return -seconds if found[3] == "-" else seconds


@lru_cache(maxsize=1_024)
def tzinfo_of(name: str) -> tzinfo:
    """Return a zone as Python has it."""
    if name in {"UTC", "GMT"}:
        return UTC
    if name in _names().values():
        return ZoneInfo(name)
    return timezone(timedelta(seconds=-_west(name)))


def spark_name(name: str) -> str:
    """Return a zone as Java knows it.

    >>> spark_name("<-07>+07"), spark_name("Europe/Berlin")
    ('-07:00', 'Europe/Berlin')
    """
    if name in _names().values():
        return name
    east = -_west(name)
    mark, seconds = "-" if east < 0 else "+", abs(east)
    text = f"{mark}{seconds // 3_600:02}:{seconds // 60 % 60:02}"
    return text + (f":{seconds % 60:02}" if seconds % 60 else "")


def moment(local: datetime, name: str) -> datetime:
    """Return when a clock of a zone shows a time, in UTC.

    >>> str(moment(datetime(2026, 10, 25, 2, 30), "Europe/Berlin"))
    '2026-10-25 01:30:00+00:00'
    >>> str(moment(datetime(2026, 3, 29, 2, 30), "Europe/Berlin"))
    '2026-03-29 01:30:00+00:00'
    """
    there = tzinfo_of(name)
    offsets = [local.replace(tzinfo=there, fold=fold).utcoffset() for fold in (0, 1)]
    return (local - min(o for o in offsets if o is not None)).replace(tzinfo=UTC)


def local_text(at: datetime, name: str) -> str:
    """Return a moment as a zone's clocks show it, with the offset, as PostgreSQL writes it.

    >>> local_text(datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC), "Asia/Kolkata")
    '2026-01-02 08:34:05.6+05:30'
    """
    there = at.astimezone(tzinfo_of(name))
    offset = there.utcoffset()
    assert offset is not None
    text = there.replace(tzinfo=None).isoformat(" ")
    return (text.rstrip("0") if there.microsecond else text) + offset_text(offset)


def offset_text(offset: timedelta) -> str:
    """Return an offset from Greenwich: hours, and what else there is of it."""
    seconds = round(offset.total_seconds())
    return ("-" if seconds < 0 else "+") + _clock(abs(seconds))
