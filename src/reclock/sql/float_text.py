"""Floating-point numbers as text, exactly as PostgreSQL writes and reads them.

Definition. ``float_text`` writes the fewest digits that lie strictly between the two midpoints to
the neighbouring floats, and of those the nearest to the value: PostgreSQL's rule with
``extra_float_digits`` of 1 or more. Python's ``repr`` also takes a midpoint itself, which differs
for some numbers of 2^53 and more (``1e23`` is ``9.999999999999999e+22``). Numbers from 0.0001 up to
below 1e15 (``real``: 1e6) are written without an exponent.

``read_float`` reads what PostgreSQL reads, but no hexadecimal, and refuses (22003) what is too
large or too near to zero. Round trip: ``read_float(float_text(x, t), t)`` is x, also for −0.

The same in Spark SQL: ``reclock.sql.plan.spark_float``. Tests: tests/sql/test_float_text.py.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.errors import StatementError
from reclock.sql.types import REAL

if TYPE_CHECKING:
    from reclock.sql.types import Type

_SPECIAL: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_WORDS: Final = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_FAR: Final = 5_000
"""No float has an exponent of ten that is as far from 0 as this."""

_LARGEST_EXACT: Final = {4: 2.0**24, 8: 2.0**53}
_DIGITS: Final = {4: 9, 8: 17}
_PLAIN_BELOW: Final = {4: 6, 8: 15}
_PLAIN_FROM: Final = -4
_LEAST_PLAIN: Final = 0.0001
_LIMITS: Final = {4: 1e6, 8: 1e15}
_SPACES: Final = " \t\n\r\v\f"


def float_text(value: float, kind: Type) -> str:
    """Return a ``real`` or ``double precision`` as text.

    >>> from reclock.sql.types import DOUBLE
    >>> [float_text(x, DOUBLE) for x in (0.1, -0.0, 1e14, 1e15, 1e23, 1.25e-5)]
    ['0.1', '-0', '100000000000000', '1e+15', '9.999999999999999e+22', '1.25e-05']
    >>> float_text(0.1, REAL), float_text(1234567, REAL)
    ('0.1', '1.234567e+06')
    """
    size = 4 if kind == REAL else 8
    number = np.float32(value) if size == 4 else value
    digits = str(number) if size == 4 else repr(value)
    if digits in _SPECIAL:
        return _SPECIAL[digits]
    if _LEAST_PLAIN <= abs(value) < _LIMITS[size]:
        return digits.removesuffix(".0")
    if abs(value) >= _LARGEST_EXACT[size]:
        digits = _inside(digits, float(number), size)
    return _written(digits, size)


def _inside(digits: str, value: float, size: int) -> str:
    """Return digits that are not a midpoint between two floats."""
    exact = Fraction(value)
    if _strictly(Fraction(digits), exact, size):
        return digits
    for count in range(1, _DIGITS[size] + 1):
        places = len(str(int(abs(exact)))) - count
        step = Fraction(10) ** places
        low = exact // step * step
        near = sorted((low, low + step), key=lambda c: (abs(c - exact), c // step % 2))
        for candidate in near:
            if _strictly(candidate, exact, size):
                return str(int(candidate))
    return digits


def _strictly(candidate: Fraction, exact: Fraction, size: int) -> bool:
    """Return whether a number is nearer to ``exact`` than to any other float."""
    kind = np.float32 if size == 4 else np.float64
    own = kind(exact.numerator // exact.denominator)
    with np.errstate(over="ignore"):
        other = np.nextafter(own, kind(np.inf) if candidate > exact else kind(-np.inf))
    if not np.isfinite(other):
        return True
    return 2 * abs(candidate - exact) < abs(Fraction(float(other)) - exact)


def _written(digits: str, size: int) -> str:
    sign, numerals, exponent = Decimal(digits).as_tuple()
    figures = "".join(map(str, numerals)).lstrip("0")
    minus = "-" if sign else ""
    if not figures:
        return minus + "0"
    point = len(figures) + int(exponent)  # of the decimal point, from the first figure
    figures = figures.rstrip("0")
    if not _PLAIN_FROM <= point - 1 < _PLAIN_BELOW[size]:
        rest = "." + figures[1:] if len(figures) > 1 else ""
        return f"{minus}{figures[0]}{rest}e{point - 1:+03d}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{figures}"
    if point >= len(figures):
        return minus + figures.ljust(point, "0")
    return f"{minus}{figures[:point]}.{figures[point:]}"


def read_float(text: str, kind: Type) -> float:
    """Return the number that a text is; 22003 if the type has no such number, 22P02 if it is none.

    >>> read_float(" -1.5e3 ", REAL), read_float("-Inf", REAL)
    (-1500.0, -inf)
    >>> read_float("1e39", REAL)
    Traceback (most recent call last):
    reclock.errors.StatementError: "1e39" is out of range for type real
    hint: use numeric for numbers that large or that near to zero
    """
    stripped = text.strip(_SPACES)
    if _WORDS.fullmatch(stripped):
        return float(stripped)
    exact = _exact(stripped)
    if exact is None:
        message = f'invalid input syntax for type {kind}: "{text}"'
        hint = "write a number, such as 1.5, 2e-3, NaN or Infinity"
        raise StatementError(message, code="22P02", hint=hint)
    value = nearest(exact, kind) if abs(exact.adjusted()) < _FAR else None
    if value is None:
        value = 0.0 if exact.is_zero() or exact.adjusted() < 0 else math.inf
        value = math.copysign(value, -1 if exact.is_signed() else 1)
    if math.isinf(value) or (value == 0 and not exact.is_zero()):
        message = f'"{stripped}" is out of range for type {kind}'
        hint = "use numeric for numbers that large or that near to zero"
        raise StatementError(message, code="22003", hint=hint)
    return value


def _exact(text: str) -> Decimal | None:
    """Return the number that a text means; None if it is none."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        return None
    most = _FAR + len(text)  # so far no number of figures makes up for it
    power = max(min(int(number[1] or 0), most), -most)
    return Decimal(f"{re.split('[eE]', text)[0]}e{power}")


def nearest(exact: Decimal, kind: Type) -> float:
    """Return the float that is nearest to a number, of two the one with an even mantissa.

    >>> nearest(Decimal("16777217.000000000000001"), REAL)
    16777218.0
    """
    value = float(exact)
    if kind != REAL or not math.isfinite(value):
        return value
    with np.errstate(all="ignore"):
        single = np.float32(value)
        if exact == Decimal(value):
            return float(single)
        # It is rounded once already: what is a midpoint now may have been none.
        for other in np.nextafter(single, np.array([-np.inf, np.inf], np.float32)):
            middle = _middle(float(single), float(other))
            if middle == value and (exact > Decimal(value)) == (other > single):
                return float(other)
    return float(single)


def _middle(one: float, other: float) -> float:
    """Return the number between two neighbours; after the largest comes what would be next."""
    finite = [math.copysign(2.0**128, x) if math.isinf(x) else x for x in (one, other)]
    return sum(finite) / 2
