"""JSON, arrays and records. ``json`` is text in Spark, read through its variant type.

An array subscript outside the array is NULL, not an error, as in PostgreSQL.
"""

from __future__ import annotations

from reclock.sql.plan.functions.length import TOO_LONG, bytes_of, too_long, within
from reclock.sql.plan.functions.overload import Overload
from reclock.sql.plan.functions.patterns import ANY, ARRAY, element, same
from reclock.sql.types import BOOLEAN, INTEGER, JSON, TEXT

OVERLOADS = (
    Overload("->", (JSON, TEXT), JSON,
             "to_json(element_at(try_cast(try_parse_json({0}) AS MAP<STRING, VARIANT>), {1}))",
             makes_null=True),
    Overload("->>", (JSON, TEXT), TEXT,
             "try_cast(element_at(try_cast(try_parse_json({0}) AS MAP<STRING, VARIANT>), {1})"
             " AS STRING)", makes_null=True),
    Overload("->", (JSON, INTEGER), JSON,
             "to_json(try_element_at(try_cast(try_parse_json({0}) AS ARRAY<VARIANT>),"
             " CASE WHEN {1} < 0 THEN {1} ELSE {1} + 1 END))", makes_null=True),
    Overload("->>", (JSON, INTEGER), TEXT,
             "try_cast(try_element_at(try_cast(try_parse_json({0}) AS ARRAY<VARIANT>),"
             " CASE WHEN {1} < 0 THEN {1} ELSE {1} + 1 END) AS STRING)", makes_null=True),
    Overload("json_array_length", (JSON,), INTEGER,
             "json_array_length({0})", makes_null=True),
    Overload("subscript", (ARRAY, INTEGER), element(),
             "CASE WHEN {1} > 0 THEN try_element_at({0}, {1}) END", makes_null=True),
    Overload("array_length", (ARRAY, INTEGER), INTEGER,
             "CASE WHEN {1} = 1 AND size({0}) > 0 THEN size({0}) END", makes_null=True),
    Overload("cardinality", (ARRAY,), INTEGER, "CASE WHEN {0} IS NOT NULL THEN size({0}) END"),
    Overload("array_append", (ARRAY, ANY), same(), within("{bytes}", "array_append({0}, {1})"),
             (too_long("{value} IS NULL AND {0} IS NOT NULL"),)),
    Overload("array_cat", (ARRAY, ARRAY), same(), within("{bytes}", "concat({0}, {1})"),
             (TOO_LONG,)),
    Overload("array_position", (ARRAY, ANY), INTEGER,
             "CAST(nullif(array_position({0}, {1}), 0) AS INT)", makes_null=True),
    Overload("array_to_string", (ARRAY, TEXT), TEXT,
             within(f"{bytes_of('{0}')} + bigint(size({{0}})) * octet_length({{1}})",
                    "array_join({0}, {1})"), (TOO_LONG,)),
    Overload("array_contains", (ARRAY, ANY), BOOLEAN, "array_contains({0}, {1})"),
    Overload("@>", (ARRAY, ARRAY), BOOLEAN, "(size(array_except({1}, {0})) = 0)"),
    Overload("&&", (ARRAY, ARRAY), BOOLEAN, "arrays_overlap({0}, {1})"),
)  # fmt: skip
