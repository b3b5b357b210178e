"""Dates and timestamps; the session's time zone is UTC. Intervals: ``interval``.

``date_trunc`` and ``extract`` take their field as a literal; which fields exist is data
here. ``extract`` gives numeric, as PostgreSQL does.
"""

from __future__ import annotations

from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.types import (
    DATE,
    DOUBLE,
    INTEGER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Numeric,
)

_RANGE = Failure("22008", "timestamp out of range")
DATE_YEARS = Failure(
    "22008",
    "date out of range",
    "{value} IS NULL OR {value} < DATE'0001-01-01' OR {value} > DATE'9999-12-31'",
)
_TIMESTAMP_YEARS = Failure(
    "22008", "timestamp out of range", "year({value}) < 1 OR year({value}) > 9999"
)
"""Dates and times have years from 1 to 9999."""

_LATER = (
    "WHEN from_utc_timestamp(__u + INTERVAL '{}' MINUTE, {{0}}) = CAST({{1}} AS TIMESTAMP)"
    " THEN __u + INTERVAL '{}' MINUTE"
)
MOMENT = (
    "element_at(transform(array(to_utc_timestamp(CAST({1} AS TIMESTAMP), {0})), __u -> CASE "
    + " ".join(_LATER.format(minutes, minutes) for minutes in (60, 30, 120))
    + " ELSE __u END), 1)"
)
"""A time that is there twice, when clocks go back, is the later one; with Spark the earlier."""


TRUNC_FIELDS = (
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month",
    "quarter", "year",
)  # fmt: skip
EXTRACT_FIELDS = {
    "year": "extract(YEAR FROM {0})",
    "quarter": "extract(QUARTER FROM {0})",
    "month": "extract(MONTH FROM {0})",
    "week": "extract(WEEK FROM {0})",
    "day": "extract(DAY FROM {0})",
    "doy": "dayofyear({0})",
    "dow": "(dayofweek({0}) - 1)",
    "isodow": "(weekday({0}) + 1)",
    "isoyear": "extract(YEAROFWEEK FROM {0})",
    "hour": "extract(HOUR FROM {0})",
    "minute": "extract(MINUTE FROM {0})",
    "second": "extract(SECOND FROM {0})",
}
_DAY_FIELDS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "isoyear")
EXTRACTED = Numeric(20, 6)


def _fields() -> list[Overload]:
    made = []
    for field, text in EXTRACT_FIELDS.items():
        value = f"CAST({text} AS {EXTRACTED.spark_name})"
        types = [TIMESTAMP, TIMESTAMPTZ] + ([DATE] if field in _DAY_FIELDS else [])
        made += [Overload(f"extract {field}", (t,), EXTRACTED, value) for t in types]
    for t, cast in ((TIMESTAMPTZ, "{0}"), (TIMESTAMP, "CAST({0} AS TIMESTAMP)"),
                    (DATE, "CAST({0} AS TIMESTAMP)")):  # fmt: skip
        value = f"CAST(CAST(unix_micros({cast}) AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(20, 6))"
        made.append(Overload("extract epoch", (t,), EXTRACTED, value))
    for field in TRUNC_FIELDS:
        name = f"date_trunc {field}"
        spark = field.removesuffix("s")
        made.append(
            Overload(name, (TIMESTAMP,), TIMESTAMP,
                     f"CAST(date_trunc('{spark}', {{0}}) AS TIMESTAMP_NTZ)")
        )  # fmt: skip
        made.append(Overload(name, (TIMESTAMPTZ,), TIMESTAMPTZ, f"date_trunc('{spark}', {{0}})"))
    return made


OVERLOADS = (
    *_fields(),
    Overload("+", (DATE, INTEGER), DATE, "try_add({0}, {1})", (DATE_YEARS,)),
    Overload("+", (INTEGER, DATE), DATE, "try_add({1}, {0})", (DATE_YEARS,)),
    Overload("-", (DATE, INTEGER), DATE, "try_subtract({0}, {1})", (DATE_YEARS,)),
    Overload("-", (DATE, DATE), INTEGER, "datediff({0}, {1})"),
    Overload("make_date", (INTEGER, INTEGER, INTEGER), DATE,
             "CASE WHEN {0} BETWEEN 1 AND 9999 THEN try_cast(concat("
             "lpad(CAST({0} AS STRING), 4, '0'), '-', CAST({1} AS STRING), '-',"
             " CAST({2} AS STRING)) AS DATE) END",
             (Failure("22008", "date field value out of range"),)),
    Overload("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ,
             MOMENT, (_TIMESTAMP_YEARS,)),
    Overload("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP,
             "CAST(from_utc_timestamp({1}, {0}) AS TIMESTAMP_NTZ)", (_TIMESTAMP_YEARS,)),
    Overload("to_timestamp", (DOUBLE,), TIMESTAMPTZ,
             "CASE WHEN {0} >= -62135596800D AND {0} < 253402300800D THEN timestamp_micros(CAST("
             "rint(({0} - 946684800D) * 1000000D) AS BIGINT) + 946684800000000L) END", (_RANGE,)),
    Overload("to_char", (TIMESTAMP, TEXT), TEXT, "date_format({0}, {1})"),
    Overload("to_char", (TIMESTAMPTZ, TEXT), TEXT, "date_format({0}, {1})"),
    Overload("now", (), TIMESTAMPTZ, "current_timestamp()", volatile=True, never_null=True),
    Overload("current_date", (), DATE, "current_date()", volatile=True, never_null=True),
    Overload("localtimestamp", (), TIMESTAMP, "localtimestamp()", volatile=True, never_null=True),
)  # fmt: skip
