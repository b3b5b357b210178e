"""What reclock answers otherwise than PostgreSQL, by decision: each with its reason.

docs/sql/functions.md (Deviations from PostgreSQL) tells users the same. A difference that no entry
covers is a defect.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from .net import Difference

REFUSED: Final = frozenset({"!0A000", "!42846", "!42883", "!42804"})
DATES: Final = (t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ)
TRANSCENDENTAL: Final = re.compile(
    r"\b(sin|cos|tan|asin|acos|atan|atan2|exp|ln|log|log10|cbrt|power)\(|\^|degrees"
)


def _number(answer: str | None) -> Decimal | None:
    if answer is None or not answer.startswith("="):
        return None
    try:
        return Decimal(answer[1:])
    except InvalidOperation:
        return None


def _refused(d: Difference) -> bool:
    """It is an error at once, and no answer."""
    return d.got in REFUSED


def _last_digits(d: Difference) -> bool:
    """Java's mathematics and the C library's differ in the last digits of a double."""
    if not TRANSCENDENTAL.search(d.case.expression):
        return False
    a, b = _number(d.wanted), _number(d.got)
    if a is None or b is None or not (a.is_finite() and b.is_finite()):
        return False
    return math.isclose(float(a), float(b), rel_tol=1e-14)


def _numeric_digits(d: Difference) -> bool:
    """A numeric has the digits of its type, at most 38: the rest is rounded, or does not fit."""
    a, b = _number(d.wanted), _number(d.got)
    if a is None or not isinstance(d.kind, t.Numeric):
        return False
    if d.got == "!22003":
        whole = d.kind.precision - d.kind.scale
        return not a.is_finite() or a.adjusted() >= whole - 1
    if b is None or not a.is_finite():
        return False
    theirs = -int(a.as_tuple().exponent)
    return abs(a - b) <= Decimal(1).scaleb(-min(d.kind.scale, theirs))


def _json_form(d: Difference) -> bool:
    """Json is kept in one form: blanks, and zeros after the point, are not part of the value."""
    if not any(kind == t.JSON for kind in d.case.kinds) or d.wanted is None or d.got is None:
        return False
    try:
        return bool(json.loads(d.wanted[1:]) == json.loads(d.got[1:]))
    except ValueError:
        return False


def _years(d: Difference) -> bool:
    """Dates and times have years from 1 to 9999, and are never infinite."""
    late = re.compile(r"=\d{5,}-|= ?.* BC$|=-?infinity$")
    return d.got in {"!22008", "!22P02"} and d.wanted is not None and bool(late.match(d.wanted))


def _syntax_of_dates(d: Difference) -> bool:
    """What is no date is 22P02, as with every type; PostgreSQL has 22007 and 22008."""
    return d.got == "!22P02" and d.wanted in {"!22007", "!22008"}


def _forms_of_texts(d: Difference) -> bool:
    """Dates are read as ISO 8601, whole numbers with decimal digits only."""
    return d.got == "!22P02" and d.case.kinds == (t.TEXT,) and "::" in d.case.expression


def _null_pieces(d: Difference) -> bool:
    """string_to_array with NULL between the pieces is NULL; PostgreSQL gives the characters."""
    return d.case.expression.startswith("string_to_array") and d.arguments[-1] is None


def _least_integer(d: Difference) -> bool:
    """PostgreSQL's right() overflows with the least integer."""
    return d.case.expression.startswith("right(") and d.arguments[-1] == "-2147483648"


def _padding(d: Difference) -> bool:
    """lpad and rpad count four bytes for each character that is asked for, also with nothing."""
    return d.got == "!54000" and "pad(" in d.case.expression


def _array_extremes(d: Difference) -> bool:
    """Of arrays with NULL elements greatest and least take NULL for the least element."""
    choice = d.case.expression.startswith(("greatest", "least"))
    return choice and any("NULL" in (a or "") for a in d.arguments)


def _unfinished(d: Difference) -> bool:
    """A pattern that ends with its escape is an error whatever the text; not if one gets so far."""
    return d.got == "!22025" and "like" in d.case.expression


DEVIATIONS: Final[tuple[Callable[[Difference], bool], ...]] = (
    _refused, _last_digits, _numeric_digits, _json_form, _years, _syntax_of_dates,
    _forms_of_texts, _null_pieces, _least_integer, _padding, _unfinished, _array_extremes,
)  # fmt: skip


def is_decided(difference: Difference) -> bool:
    """Return whether a difference is one of those that are decided."""
    return any(covers(difference) for covers in DEVIATIONS)
