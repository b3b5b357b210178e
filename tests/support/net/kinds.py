"""The types that random queries have, by short names: their constants, and what compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from net.generate import Generator

NAMES = {
    "int": "int", "big": "bigint", "num": "numeric(12, 2)", "text": "text", "bool": "boolean",
    "date": "date", "ts": "timestamp", "float": "double precision", "arr": "int[]",
    "small": "smallint", "real": "real", "tz": "timestamptz", "iv": "interval", "json": "jsonb",
    "bytes": "bytea", "texts": "text[]",
}  # fmt: skip
LITERALS = {
    "int": ("1", "0", "2", "3", "-1"),
    "big": ("1::bigint", "0::bigint", "1000000000000"),
    "num": ("1.50", "0.00", "-2.25"),
    "text": ("text 'x'", "''", "'y'", "text 'Ä'", "text '10'", "text 'xy'"),
    "bool": ("true", "false"),
    "date": ("date '2024-02-29'", "date '1999-12-31'"),
    "ts": (
        "timestamp '2024-03-01 00:00:00'",
        "timestamp '1970-01-01 00:00:01'",
        "timestamp '2024-02-29 23:59:59.9999995'",
    ),
    "float": ("0.5::float8", "3.0::float8"),
    "arr": ("array[1, 2]", "array[3]", "array[1, null]"),
    "small": ("1::smallint", "0::smallint", "-1::smallint"),
    "real": ("0.5::real", "3.0::real"),
    "tz": ("timestamptz '2024-03-31 01:30:00+00'", "timestamptz '2024-02-29 23:59:59.5+01'"),
    "iv": ("interval '1 mon'", "interval '-3 days'", "interval '14 mons -00:00:00.000001'"),
    "json": ("""jsonb '{"a": 1, "b": "x"}'""", """jsonb '[1, "y", null]'""", "jsonb 'null'"),
    "bytes": (r"bytea '\x78'", "bytea ''", r"bytea '\x00ff'"),
    "texts": ("array['x', null]", "array['']", "array['a,b', 'NULL']"),
}
EDGES = {
    "int": ("2147483647", "(-2147483648)"),
    "big": ("9223372036854775807", "(-9223372036854775808)"),
    "num": ("99999999.99", "0.01"),
    "text": ("text 'ß\U0001f600'", "text 'it''s \\ %'", "text '1999-12-31'"),
    "bool": ("null::boolean",),
    "date": ("date '9999-12-31'", "date '0001-01-01'"),
    "ts": ("timestamp '9999-12-31 23:59:59.999999'", "timestamp '0001-01-01'"),
    "float": ("'NaN'::float8", "'-Infinity'::float8", "1e15::float8"),
    "arr": ("array[]::int[]", "array[null]::int[]"),
    "small": ("32767::smallint", "(-32768)::smallint"),
    "real": ("'NaN'::real", "'Infinity'::real", "16777216::real"),
    "tz": ("timestamptz '9999-12-31 23:59:59.999999+00'", "timestamptz '0001-01-01 00:00:00+00'"),
    "iv": ("interval '-2147483648 mons'", "interval '2147483647 days'", "interval '0'"),
    "json": ("jsonb '{}'", "jsonb '[]'", """jsonb '"\u4e2d"'"""),
    "bytes": (r"bytea '\x" + "41" * 60 + "'",),
    "texts": ("array[]::text[]", "array[null]::text[]", "array['{}', ' ', '\U0001f600']"),
}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
ANY = ("int", "int", "int", "big", "num", "text", "text", "bool", "date", "ts", "float", "small",
        "real", "tz", "iv", "bytes")  # fmt: skip
UNORDERED = frozenset({"arr", "texts", "json"})
"""Kinds that are not compared here: what ``<`` means for them is another matter."""


def literal(g: Generator, kind: str) -> str:
    """Return a constant: seldom one from the edge of its type."""
    return str(g.choose(*(EDGES[kind] if g.chance(0.04) else LITERALS[kind])))
