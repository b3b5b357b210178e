"""Fields of dates and times in plain Python, with PostgreSQL's meaning.

Compared with PostgreSQL: tests/functions/test_model.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from model.evaluate_text import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _seconds(at: datetime) -> Decimal:
    return at.second + Decimal(at.microsecond) / 1_000_000


def _epoch(at: date) -> Decimal:
    if not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day, tzinfo=UTC)
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    return Decimal(since // timedelta(microseconds=1)) / 1_000_000


FIELDS: Final[dict[str, Callable[..., int | Decimal]]] = {
    "year": lambda at: at.year,
    "quarter": lambda at: (at.month + 2) // 3,
    "month": lambda at: at.month,
    "week": lambda at: at.isocalendar().week,
    "isoyear": lambda at: at.isocalendar().year,
    "day": lambda at: at.day,
    "doy": lambda at: at.timetuple().tm_yday,
    "dow": lambda at: at.isoweekday() % 7,
    "isodow": lambda at: at.isoweekday(),
    "hour": lambda at: at.hour,
    "minute": lambda at: at.minute,
    "second": _seconds,
    "epoch": _epoch,
}
"""By name: what ``extract`` gives of a date or a time."""


def made_date(year: int, month: int, day: int) -> date:
    """Return the day, or refuse it."""
    try:
        return date(year, month, day)
    except (ValueError, OverflowError) as error:
        raise Refused(code="22008", message="date field value out of range") from error
