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
from reclock.sql.interval import parse_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from .net import Difference

REFUSED: Final = frozenset({"!0A000", "!42846", "!42883", "!42804"})
DATES: Final = (t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ)
TRANSCENDENTAL: Final = re.compile(
    r"\b(sin|cos|tan|asin|acos|atan|atan2|exp|ln|log|log10|cbrt|power)\(|\^|degrees"
)
FLOAT_SUMS: Final = re.compile(
    r"(sum|avg|stddev_\w+|var_\w+|corr|covar_\w+|regr_\w+|percentile_cont)\("
)
PICKED: Final = re.compile(r"(min|max|mode|percentile_disc)\(")
AGGREGATED: Final = re.compile(
    rf"{FLOAT_SUMS.pattern}|{PICKED.pattern}|(array_agg|lag|lead|first_value|last_value|nth_value)\("
)
_EXTREME_INTERVALS: Final = frozenset(
    {"=178956970 years 7 mons 2147483647 days 2562047788:00:54.775807",
     "=-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808"}
)  # fmt: skip
MINUS_ZERO: Final = re.compile(r"(?<![\w.])-0(?![\w.])")


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


def _more_types(d: Difference) -> bool:
    """PostgreSQL has no such function: min of booleans, for one."""
    return d.wanted == "!42883"


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
    if isinstance(d.kind, t.Numeric) and (d.wanted, d.got) == ("answers", "!22003"):
        return True  # of a whole query, as one of its groups does not fit
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
    """What picks one of several arrays takes a NULL element for the least one."""
    choice = d.case.expression.startswith(("greatest", "least")) or (
        PICKED.match(d.case.expression) and isinstance(d.kind, t.Array)
    )
    return bool(choice) and any("NULL" in (a or "") for a in d.arguments)


def _arrays_of_arrays(d: Difference) -> bool:
    """array_agg of arrays is an array of arrays, of any lengths; PostgreSQL wants a rectangle."""
    return d.case.expression.startswith("array_agg") and isinstance(d.case.kinds[0], t.Array)


def _unfinished(d: Difference) -> bool:
    """A pattern that ends with its escape is an error whatever the text; not if one gets so far."""
    return d.got == "!22025" and "like" in d.case.expression


def _infinite_intervals(d: Difference) -> bool:
    """Intervals are never infinite; of the least number of months PostgreSQL's quarter is wrong.

    What PostgreSQL keeps for infinite ones are the largest and the least interval here.
    """
    if d.wanted == "!22008" and d.got in _EXTREME_INTERVALS:
        return True
    if d.case.expression.startswith("extract(quarter") and "-178956970 years" in str(d.arguments):
        return True
    return d.wanted == "=infinity" and d.got == "!22007"


def _float_aggregates(d: Difference) -> bool:
    """Sums of floats are exact, rounded once, and infinite beyond the largest; NaN only of NaN.

    PostgreSQL adds one after the other, so that its last digits depend on the order of rows, and
    fails where a sum of squares overflows, for an average too.
    """
    if not FLOAT_SUMS.match(d.case.expression) or d.kind not in t.FLOATS:
        return False
    if d.wanted == "!22003":
        return True
    a, b = _number(d.wanted), _number(d.got)
    if a is None or b is None or not (a.is_finite() and b.is_finite()):
        return False
    given = [abs(float(v)) for row in d.arguments for v in (row or "").split("|") if v != "None"]
    largest = max([v for v in given if math.isfinite(v)], default=0.0)
    power = 2 if d.case.expression.startswith(("var", "covar")) else 1
    digits = 1e-6 if t.REAL in d.case.kinds else 1e-13
    return abs(float(a) - float(b)) <= digits * len(given) * min(largest**power, 1e300)


def _signs_of_zero(d: Difference) -> bool:
    """Zeros of both signs are one value: what is grouped or aggregated has the positive one."""
    if not AGGREGATED.match(d.case.expression) or d.wanted is None or d.got is None:
        return False
    return MINUS_ZERO.sub("0", d.wanted) == MINUS_ZERO.sub("0", d.got)


def _interval_sums(d: Difference) -> bool:
    """Sums of intervals are exact: PostgreSQL fails if one on the way does not fit."""
    summed = d.case.expression.startswith(("sum(", "avg("))
    return summed and d.kind == t.INTERVAL and d.wanted == "!22008"


def _equal_intervals(d: Difference) -> bool:
    """Of equal intervals, 1 mon and 30 days, PostgreSQL picks by the order of rows."""
    if not PICKED.match(d.case.expression) or d.kind != t.INTERVAL or not d.wanted or not d.got:
        return False
    if not d.wanted.startswith("=") or not d.got.startswith("="):
        return False
    return parse_interval(d.wanted[1:]).span == parse_interval(d.got[1:]).span


DEVIATIONS: Final[tuple[Callable[[Difference], bool], ...]] = (
    _refused, _more_types, _last_digits, _numeric_digits, _json_form, _years, _syntax_of_dates,
    _infinite_intervals, _float_aggregates, _signs_of_zero, _interval_sums, _equal_intervals,
    _forms_of_texts, _null_pieces, _least_integer, _padding, _unfinished, _array_extremes,
    _arrays_of_arrays,
)  # fmt: skip


def is_decided(difference: Difference) -> bool:
    """Return whether a difference is one of those that are decided."""
    return any(covers(difference) for covers in DEVIATIONS)
