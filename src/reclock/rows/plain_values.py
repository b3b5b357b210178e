"""Texts as values by Arrow, many at a time, where they are written plainly.

A column whose texts are all plain costs no Python object per value. Others (blanks, exponents,
words, zones by name, what is no value at all) give None, and are read one by one: what a text
means, and the error of one that means nothing, is decided in one place.

Tests: tests/rows/test_plain_values.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.types import arrow_type
from reclock.sql.types import BOOLEAN, DATE, DOUBLE, INTEGERS, TIMESTAMP, TIMESTAMPTZ, Numeric
from reclock.sql.zone import DEFAULT, zone

if TYPE_CHECKING:
    from reclock.sql.types import Type

_FIRST: Final = -62_135_596_800_000_000
_LAST: Final = 253_402_300_799_999_999
"""The first and the last microsecond of the years from 1 to 9999."""

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
_OFFSET: Final = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_YES: Final = ("t", "true", "1", "yes", "on", "y")
_NO: Final = ("f", "false", "0", "no", "off", "n")
_INTEGER: Final = r"^-?[0-9]{1,18}$"
_DOUBLE: Final = r"^-?[0-9]{1,15}([.][0-9]{1,15})?$"


def plain_values(texts: pa.Array, kind: Type) -> pa.Array | None:
    """Return texts as values of a type; None if some are to be read one by one.

    >>> from reclock.sql.types import BIGINT
    >>> plain_values(pa.array(["7", None]), BIGINT).to_pylist()
    [7, None]
    >>> plain_values(pa.array(["7 "]), BIGINT) is None
    True
    """
    try:
        return _values(texts, kind)
    except pa.ArrowInvalid:  # no such day, or too large
        return None


def _values(texts: pa.Array, kind: Type) -> pa.Array | None:  # noqa: PLR0911 - one per type
    if kind in INTEGERS:
        return texts.cast(arrow_type(kind)) if _all(texts, _INTEGER) else None
    if kind == DOUBLE:
        return texts.cast(arrow_type(kind)) if _all(texts, _DOUBLE) else None
    if isinstance(kind, Numeric):
        whole = kind.precision - kind.scale
        fraction = f"([.][0-9]{{1,{kind.scale}}})?" if kind.scale else ""
        if whole < 1 or not _all(texts, rf"^-?[0-9]{{1,{whole}}}{fraction}$"):
            return None
        return texts.cast(arrow_type(kind))
    if kind == BOOLEAN:
        yes = pc.is_in(texts, pa.array(_YES, texts.type))
        known = pc.or_(yes, pc.is_in(texts, pa.array(_NO, texts.type)))
        if not pc.all(pc.or_(known, texts.is_null())).as_py():
            return None
        return pc.if_else(texts.is_valid(), yes, None)
    if kind == DATE:
        return texts.cast(arrow_type(kind)) if _all(texts, f"^{_DATE}$") and _years(texts) else None
    if kind == TIMESTAMP:
        plain = _all(texts, f"^{_DATE}{_TIME}$") and _years(texts)
        return texts.cast(arrow_type(kind)) if plain else None
    if kind == TIMESTAMPTZ:
        return _moments(texts)
    return None


def _all(texts: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py() is not False


def _years(texts: pa.Array) -> bool:
    """Return whether there are years: the first is 1."""
    return not pc.any(pc.starts_with(texts, "0000"), min_count=0).as_py()


def _moments(texts: pa.Array) -> pa.Array | None:
    """Return moments: with offsets, or all without, in UTC."""
    if _all(texts, f"^{_DATE}{_TIME}{_OFFSET}$"):
        found = texts.cast(pa.timestamp("us", "UTC"))
    elif zone() == DEFAULT and _all(texts, f"^{_DATE}{_TIME}$"):
        found = texts.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    else:
        return None
    # An offset may lead out of the years that there are.
    ends = pc.min_max(found.cast(pa.int64())).as_py()
    if ends["min"] is not None and (ends["min"] < _FIRST or ends["max"] > _LAST):
        return None
    return found
