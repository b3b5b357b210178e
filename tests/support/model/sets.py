"""threshold, distinct, EXCEPT and INTERSECT [ALL], on contents: counts per row, clamped.

A row that occurs a negative number of times counts as absent, in every input; what a row
does never depends on another row.

Checked against SQLite: tests/change/test_model_sql.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.consolidate import Rows


def threshold(rows: Rows) -> Rows:
    """Return the rows that occur a positive number of times, as often as they do."""
    return +rows


def distinct(rows: Rows) -> Rows:
    """Return each present row once."""
    return Counter(threshold(rows).keys())


def except_all(left: Rows, right: Rows) -> Rows:
    """Return each left row as much more often as it occurs left than right."""
    return threshold(left) - threshold(right)


def except_distinct(left: Rows, right: Rows) -> Rows:
    """Return once each row that is left and not right."""
    return distinct(left) - distinct(right)


def intersect_all(left: Rows, right: Rows) -> Rows:
    """Return each row as often as it occurs on both sides."""
    return threshold(left) & threshold(right)


def intersect_distinct(left: Rows, right: Rows) -> Rows:
    """Return once each row that is on both sides."""
    return distinct(left) & distinct(right)
