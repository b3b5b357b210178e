"""Dates and times: moved by intervals, cut, taken apart. Years are 1 to 9999, the zone is UTC.

An interval must be a constant of a size that cannot leave 64 bits. Months are added first, the day
being that of a shorter month if need be, then days, then microseconds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.piece import (
    Kernel,
    Piece,
    columns,
    made,
    numbers,
    plain,
    refused,
    valid,
)
from reclock.dataflow.types import arrow_type
from reclock.interval import DAY, Interval
from reclock.sql import types as t
from reclock.sql.plan.functions.datetime import DATE_YEARS, EXTRACTED
from reclock.sql.plan.functions.interval import TIME_RANGE
from reclock.sql.plan.scalar import Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call, Scalar
    from reclock.sql.types import Type

    Ints = npt.NDArray[np.int64]

TIMES: Final = frozenset({t.TIMESTAMP, t.TIMESTAMPTZ})
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
"""Days since 1970 of 0001-01-01 and 9999-12-31."""

_MOST: Final = Interval(120_000, 4_000_000, 4_000_000 * DAY)
_UNITS: Final = {
    "microseconds": "microsecond", "milliseconds": "millisecond", "second": "second",
    "minute": "minute", "hour": "hour", "day": "day", "week": "week", "month": "month",
    "quarter": "quarter", "year": "year",
}  # fmt: skip
_FIELDS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": partial(pc.day_of_week, week_start=7),
    "isodow": partial(pc.day_of_week, count_from_zero=False),
    "isoyear": pc.iso_year,
    "hour": pc.hour,
    "minute": pc.minute,
}


def kernel_of(call: Call) -> Kernel | None:  # noqa: PLR0911 - one per kind of function
    """Return the kernel of a function of dates or times."""
    name, arguments = call.function.name, call.arguments
    kinds = tuple(a.type for a in arguments)
    match name, kinds:
        case "-", (t.DATE, t.DATE):
            return _days_between
        case "+" | "-", (t.DATE, t.INTEGER):
            return partial(_days_later, 1 if name == "+" else -1)
        case "+", (t.INTEGER, t.DATE):
            return lambda given: _days_later(1, given[::-1])
        case "-", (one, other) if one == other and one in TIMES:
            return _between
        case "+" | "-", (moment, t.INTERVAL) if moment in TIMES:
            return _later(arguments[1], moment, 1 if name == "+" else -1, 0)
        case "+", (t.INTERVAL, moment) if moment in TIMES:
            return _later(arguments[0], moment, 1, 1)
        case "date_bin", (t.INTERVAL, moment, _):
            return _binned(arguments[0], moment)
        case "mz_timestamp", (moment,):
            return partial(_milliseconds, moment)
    word, _, field = name.partition(" ")
    if word == "date_trunc" and kinds[0] in TIMES and field in _UNITS:
        return plain(partial(_cut, _UNITS[field]))
    if word == "extract" and kinds[0] in {*TIMES, t.DATE}:
        return _field(field, kinds[0])
    return None


def micros_of(values: pa.Array) -> Ints:
    """Return the microseconds since 1970 of times; 0 where there is none."""
    return numbers(values, pa.int64())


def _times(micros: Ints, kind: Type, there: npt.NDArray[np.bool_] | None) -> Piece:
    """Return times; those whose year is not one of 1 to 9999 are errors."""
    beyond = (micros < _FIRST_DAY * DAY) | (micros >= (_LAST_DAY + 1) * DAY)
    found = made(micros, arrow_type(kind), there)
    if not beyond.any():
        return Piece(found)
    mask = beyond if there is None else beyond & there
    return refused(found, (pa.array(mask), TIME_RANGE))


def _days_between(arguments: Sequence[Datum]) -> Piece:
    one, other = columns(arguments)
    return Piece(pc.subtract(one.view(pa.int32()), other.view(pa.int32())))


def _days_later(sign: int, arguments: Sequence[Datum]) -> Piece:
    dates, days = columns(arguments)
    there = valid([dates, days])
    later = numbers(dates, pa.int32()).astype(np.int64) + sign * numbers(days).astype(np.int64)
    beyond = (later < _FIRST_DAY) | (later > _LAST_DAY)
    mask = beyond if there is None else beyond & there
    kept = np.where(beyond, 0, later).astype(np.int32)
    return refused(made(kept, pa.date32(), there), (pa.array(mask), DATE_YEARS))


def _between(arguments: Sequence[Datum]) -> Piece:
    """Return the difference of two times: days, and what is left of a day, of one sign."""
    one, other = columns(arguments)
    there = valid([one, other])
    apart = micros_of(one) - micros_of(other)
    days = (np.abs(apart) // DAY) * np.sign(apart)
    kind = arrow_type(t.INTERVAL)
    parts = {"days": days.astype(np.int32), "micros": apart - days * DAY}
    none = None if there is None else pa.array(~there)
    arrays = [
        pa.array(parts.get(field.name, np.zeros(len(apart), np.int32)), field.type)
        for field in kind
    ]
    return Piece(pa.StructArray.from_arrays(arrays, fields=list(kind), mask=none))


def _constant(scalar: Scalar) -> Interval | None:
    if not isinstance(scalar, Literal) or not isinstance(scalar.value, Interval):
        return None
    value = scalar.value
    small = (
        abs(value.months) <= _MOST.months
        and abs(value.days) <= _MOST.days
        and abs(value.microseconds) <= _MOST.microseconds
    )
    return value if small else None


def _later(scalar: Scalar, kind: Type, sign: int, moment: int) -> Kernel | None:
    """Return the kernel that adds a constant interval to the argument at ``moment``."""
    by = _constant(scalar)
    if by is None:
        return None
    months = sign * by.months
    micros = sign * (by.days * DAY + by.microseconds)

    def later(arguments: Sequence[Datum]) -> Piece:
        (times,) = columns([arguments[moment]])
        given = micros_of(times)
        moved = _months_later(given, months) if months else given
        return _times(moved + micros, kind, valid([times]))

    return later


def _months_later(micros: Ints, months: int) -> Ints:
    days = np.floor_divide(micros, DAY)
    dates = days.astype("datetime64[D]")
    begins = dates.astype("datetime64[M]")
    target = begins + months
    first = target.astype("datetime64[D]").astype(np.int64)
    length = (target + 1).astype("datetime64[D]").astype(np.int64) - first
    day = days - begins.astype("datetime64[D]").astype(np.int64)
    return np.asarray((first + np.minimum(day, length - 1)) * DAY + (micros - days * DAY))


def _binned(scalar: Scalar, kind: Type) -> Kernel | None:
    stride = _constant(scalar)
    if stride is None or stride.months or kind not in TIMES:
        return None
    step = stride.days * DAY + stride.microseconds
    if step <= 0:
        return None

    def binned(arguments: Sequence[Datum]) -> Piece:
        source, origin = columns(arguments[1:])
        times = micros_of(source)
        return _times(
            times - np.mod(times - micros_of(origin), step), kind, valid([source, origin])
        )

    return binned


def _cut(unit: str, times: pa.Array) -> pa.Array:
    kind = times.type
    return pc.floor_temporal(times.cast(pa.timestamp("us")), unit=unit).cast(kind)


def _field(field: str, kind: Type) -> Kernel | None:
    if field in _FIELDS and (kind != t.DATE or field not in {"hour", "minute"}):
        return plain(partial(_whole, _FIELDS[field]))
    if field == "second" and kind != t.DATE:
        return plain(lambda times: _seconds(times, 60_000_000))
    return plain(lambda times: _seconds(times, None)) if field == "epoch" else None


def _naive(times: pa.Array) -> pa.Array:
    return times.cast(pa.timestamp("us")) if pa.types.is_timestamp(times.type) else times


def _whole(function: Callable[[pa.Array], pa.Array], times: pa.Array) -> pa.Array:
    small = function(_naive(times)).cast(pa.int64()).cast(pa.decimal128(25, 6))
    return small.cast(arrow_type(EXTRACTED))


def _seconds(times: pa.Array, modulus: int | None) -> pa.Array:
    """Return microseconds as decimals of seconds."""
    values = _naive(times).cast(pa.timestamp("us"))
    micros = micros_of(values)
    if modulus is not None:
        micros = np.mod(micros, modulus)
    whole = made(micros, pa.int64(), valid([values])).cast(pa.decimal128(20, 0))
    return pa.Array.from_buffers(arrow_type(EXTRACTED), len(whole), whole.buffers())


def _milliseconds(kind: Type, arguments: Sequence[Datum]) -> Piece:
    (values,) = columns(arguments)
    if kind == t.BIGINT:
        return Piece(values)
    times = values.cast(pa.timestamp("us")) if kind == t.DATE else values
    found = np.floor_divide(micros_of(times), 1_000)
    return Piece(made(found, pa.int64(), valid([values])))
