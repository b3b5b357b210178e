"""The text of an interval → its three numbers, exactly as PostgreSQL's ``interval_in`` reads it.

``parse_interval`` takes every form of the manual: numbers with units, ``1-2 3 4:05:06.7`` of the
SQL standard, both forms of ISO 8601, and what a qualifier says (``interval '3' hour to minute``).
A text that is none is 22007, a number that is too large 22015, the sum of them 22008. Endless
intervals (``infinity``) are refused: they came with PostgreSQL 17.

Tests: tests/sql/interval/test_parse.py, and tests/sql/interval/test_like_postgresql.py over
random texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported, StatementError
from reclock.sql.interval.amount import Amount, BadFormat, FieldOverflow
from reclock.sql.interval.iso import read_iso
from reclock.sql.interval.qualifier import PLAIN, Qualifier
from reclock.sql.interval.words import read_words

if TYPE_CHECKING:
    from reclock.interval import Interval

__all__ = ["PLAIN", "Qualifier", "parse_interval"]

_EXAMPLE: Final = "write numbers and units, such as 1 year 2 months 3 days 04:05:06"
_ENDLESS: Final = {"infinity", "-infinity", "+infinity"}


def parse_interval(text: str, qualifier: Qualifier = PLAIN) -> Interval:
    """Return the interval that ``text`` stands for.

    >>> parse_interval("1 day 2 hours ago"), parse_interval("1-2 3 4:05:06.7")
    (Interval(months=0, days=-1, microseconds=-7200000000), \
Interval(months=14, days=3, microseconds=14706700000))
    >>> str(parse_interval("P1Y2M3DT4H5M6.7S"))
    '1 year 2 mons 3 days 04:05:06.7'
    """
    if text.strip().lower() in _ENDLESS:
        message = f'interval "{text.strip()}" is not supported: an interval has an end here'
        raise NotSupported(message, hint="use NULL, or a long interval such as 1000000 years")
    try:
        return qualifier.applied(_amount(text, qualifier).interval())
    except BadFormat:
        message = f'invalid input syntax for type interval: "{text:.60}"'
        raise StatementError(message, code="22007", hint=_EXAMPLE) from None
    except FieldOverflow:
        message = f'interval field value out of range: "{text:.60}"'
        hint = "months and days have 32 bits, and what is shorter 64 bits of microseconds"
        raise StatementError(message, code="22015", hint=hint) from None


def _amount(text: str, qualifier: Qualifier) -> Amount:
    try:
        return read_words(text, qualifier)
    except BadFormat:
        return read_iso(text)
