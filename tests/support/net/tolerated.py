"""Errors that we raise where PostgreSQL answers, by decision: each with its reason.

docs/sql/functions.md (Deviations from PostgreSQL) tells users the same. ``run`` counts them; an
error that is not here is a defect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from net.judge import BEYOND
from reclock.interval import DAY, Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from net.judge import Answer
    from net.tables import Contents

_LATE = re.compile(r"9999-12-31|0001-01-01|-2147483648|2147483647")
_LONG = 10**6 * DAY


def _years(got: Answer, text: str, contents: Contents) -> bool:
    """Dates and times have years from 1 to 9999."""
    if got.code != BEYOND:
        return False
    values = [v for rows in contents.values() for row in rows for v in row]
    return bool(_LATE.search(text)) or any(
        getattr(v, "year", 2000) in {1, 9999} or (isinstance(v, Interval) and abs(v.span) > _LONG)
        for v in values
    )


def _escapes(got: Answer, text: str, contents: Contents) -> bool:
    """A pattern that ends with its escape is an error whatever the text."""
    del contents
    return got.code == "22025" and "like" in text


def _digits(got: Answer, text: str, contents: Contents) -> bool:
    """A numeric has at most 38 digits."""
    del text, contents
    return got.code == "22003" and "numeric" in got.message


TOLERATED: Final[dict[str, Callable[[Answer, str, Contents], bool]]] = {
    "years": _years, "escapes": _escapes, "digits": _digits,
}  # fmt: skip


def tolerated(got: Answer | None, text: str, contents: Contents) -> str | None:
    """Return by which decision an answer is an error; None: by none, or it is no error."""
    if got is None or got.rows is not None:
        return None
    return next((name for name, is_it in TOLERATED.items() if is_it(got, text, contents)), None)
