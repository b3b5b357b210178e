"""Edge values of every type, as literals that PostgreSQL and reclock both read.

NULL is among those of every type.
"""

from __future__ import annotations

from typing import Final

from reclock.sql import types as t

Literal = str | None

NUMERIC_SMALL: Final = t.Numeric(12, 2)
NUMERIC_WHOLE: Final = t.Numeric(20, 0)
NUMERIC_WIDE: Final = t.Numeric(38, 9)

EDGES: Final[dict[t.Type, tuple[Literal, ...]]] = {
    t.BOOLEAN: ("true", "false"),
    t.SMALLINT: ("0", "1", "-1", "7", "32767", "-32768"),
    t.INTEGER: ("0", "1", "-1", "2", "7", "-7", "33", "2147483647", "-2147483648"),
    t.BIGINT: ("0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808", "4294967296"),
    t.REAL: ("0", "-0", "1", "-2.5", "0.1", "3.4028235e38", "1e-45", "16777217", "1e7", "NaN",
             "Infinity", "-Infinity"),
    t.DOUBLE: ("0", "-0", "1", "-1", "0.5", "-2.5", "0.1", "1e23", "1.2345678901234567e-4", "1e15",
               "123456789012345680", "1.7976931348623157e308", "5e-324", "709.8", "NaN", "Infinity",
               "-Infinity"),
    NUMERIC_SMALL: ("0", "1.00", "-1.50", "2.50", "0.01", "9999999999.99", "-9999999999.99"),
    NUMERIC_WHOLE: ("0", "3", "-3", "99999999999999999999"),
    NUMERIC_WIDE: ("0", "0.000000001", "-123.456000000", "99999999999999999999999999999.999999999"),
    t.TEXT: ("", " ", "a", "abc", "Hello World", "  padded  ", "12", "-1.5e3", "it's \\ %_",
             "\u00fcber", "\u0130\u0131\u00df\u01c6", "\U0001d11e\U0001f600", "e\u0301",
             "line\nbreak\ttab", "aXbXc", "X", "\u4e2d\u6587", "$1\\1",
             "1 day 02:03:04.5", "-P1Y2M3DT4H5M6.789S", "2024-02-29", "infinity"),
    t.BYTEA: ("\\x", "\\x00", "\\xdeadbeef", "\\x" + "41" * 60),
    t.DATE: ("1970-01-01", "2000-02-29", "0001-01-01", "9999-12-31", "2024-12-30", "1582-10-10",
             "1900-03-01", "2021-01-03"),
    t.TIMESTAMP: ("1970-01-01 00:00:00", "2024-02-29 23:59:59.999999", "0001-01-01 00:00:00",
                  "9999-12-31 23:59:59.999999", "2021-01-03 12:00:00.5", "1969-12-31 23:59:59.5",
                  "1582-10-10 01:02:03", "1900-01-01 00:00:00", "2024-10-27 02:30:00",
                  "2024-03-31 02:30:00", "2024-11-03 01:59:59.999999"),
    t.TIMESTAMPTZ: ("1970-01-01 00:00:00+00", "2024-03-31 01:30:00+00", "0001-01-01 00:00:00+00",
                    "9999-12-31 23:59:59.999999+00", "2021-07-03 12:00:00.25+02",
                    "1883-11-18 17:00:00+00"),
    t.INTERVAL: ("0", "1 mon", "30 days", "-1 mon", "24:00:00", "00:00:00.000001",
                 "1 day -25:00:00", "-1 years -2 mons +3 days -04:05:06.789",
                 "13 mons 31 days 23:59:59.999999",
                 "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775807",
                 "178956970 years 7 mons 2147483647 days 2562047788:00:54.775806",
                 "2147483647 days", "292 years", "-00:00:00.5"),
    t.JSON: ("null", "1", "1.50", "true", '"text"', "[]", "[1, null, \"b\", 1.5e10]", "{}",
             '{"a": 1, "b": {"c": [1,2]}, "": "empty", "n": null, "u": "\\u00fc\\n"}',
             "[[1], {\"a\": 2}]"),
    t.Array(t.INTEGER): ("{}", "{1}", "{1,2,3}", "{NULL}", "{1,NULL,3}", "{3,3,1}"),
    t.Array(t.TEXT): ("{}", '{""}', "{a,b}", '{NULL,"x,y","NULL"}'),
    t.Array(t.DOUBLE): ("{}", "{1,0.1,1e23}", "{NaN,-0}"),
    t.Array(t.BOOLEAN): ("{t,f,NULL}",),
    t.Array(t.INTERVAL): ("{}", '{"1 mon","30 days",NULL}', '{"30 days"}', '{"1 mon"}'),
    t.Array(t.TIMESTAMP): ('{"2024-02-29 23:59:59.5"}',),
}  # fmt: skip


def of(kind: t.Type) -> tuple[Literal, ...]:
    """Return the edge values of a type, NULL last."""
    return (*EDGES[kind], None)
