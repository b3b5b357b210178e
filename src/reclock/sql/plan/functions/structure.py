"""JSON, arrays and records. ``json`` is text in Spark, read through its variant type.

An array subscript outside the array is NULL, not an error, as in PostgreSQL.
"""

from __future__ import annotations

from reclock.sql.plan.functions.length import TOO_LONG, bytes_of, too_long, within
from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.functions.patterns import ANY, ARRAY, element, same
from reclock.sql.types import BOOLEAN, INTEGER, JSON, TEXT, Array

BOOLEANS = Overload(
    "booleans as text",
    (ARRAY,),
    Array(TEXT),
    "transform({0}, __e -> CASE WHEN __e THEN 't' WHEN NOT __e THEN 'f' END)",
)
"""What ``array_to_string`` shows of booleans; it is not in the table, for it has no name."""

OVERLOADS = (
    Overload("->", (JSON, TEXT), JSON,
             "to_json(element_at(try_cast(try_parse_json({0}) AS MAP<STRING, VARIANT>), {1}))",
             makes_null=True),
    Overload("->>", (JSON, TEXT), TEXT,
             "try_cast(element_at(try_cast(try_parse_json({0}) AS MAP<STRING, VARIANT>), {1})"
             " AS STRING)", makes_null=True),
    Overload("->", (JSON, INTEGER), JSON,
             "to_json(try_element_at(try_cast(try_parse_json({0}) AS ARRAY<VARIANT>),"
             " CASE WHEN {1} < 0 THEN {1} ELSE try_add({1}, 1) END))", makes_null=True),
    Overload("->>", (JSON, INTEGER), TEXT,
             "try_cast(try_element_at(try_cast(try_parse_json({0}) AS ARRAY<VARIANT>),"
             " CASE WHEN {1} < 0 THEN {1} ELSE try_add({1}, 1) END) AS STRING)", makes_null=True),
    Overload("json_array_length", (JSON,), INTEGER,
             "json_array_length({0})",
             (Failure("22023", "cannot get array length of a non-array"),)),
    Overload("subscript", (ARRAY, INTEGER), element(),
             "CASE WHEN {1} > 0 THEN try_element_at({0}, {1}) END", makes_null=True),
    Overload("array_length", (ARRAY, INTEGER), INTEGER,
             "CASE WHEN {1} = 1 AND size({0}) > 0 THEN size({0}) END", makes_null=True),
    Overload("cardinality", (ARRAY,), INTEGER, "CASE WHEN {0} IS NOT NULL THEN size({0}) END"),
    Overload("array_append", (ARRAY, ANY), same(),
             within("{bytes}", "array_append(coalesce({0}, CAST(array() AS {type})), {1})"),
             (too_long("{value} IS NULL"),), never_null=True),
    Overload("array_cat", (ARRAY, ARRAY), same(),
             within("{bytes}", "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0}"
                              " ELSE concat({0}, {1}) END"),
             (too_long("{value} IS NULL AND coalesce({0}, {1}) IS NOT NULL"),)),
    Overload("array_position", (ARRAY, ANY), INTEGER,
             "CASE WHEN {1} IS NULL THEN CAST(nullif(array_position(transform({0},"
             " __e -> __e IS NULL), true), 0) AS INT)"
             " ELSE CAST(nullif(array_position({0}, {1}), 0) AS INT) END", makes_null=True),
    Overload("array_to_string", (ARRAY, TEXT), TEXT,
             within(f"{bytes_of('{0}')} + bigint(size({{0}})) * octet_length({{1}})",
                    "array_join({0}, {1})"), (TOO_LONG,)),
    Overload("array_contains", (ARRAY, ANY), BOOLEAN, "array_contains({0}, {1})"),
    Overload("@>", (ARRAY, ARRAY), BOOLEAN, "CASE WHEN {0} IS NOT NULL THEN"
             " forall({1}, __e -> coalesce(array_contains({0}, __e), false)) END"),
    Overload("&&", (ARRAY, ARRAY), BOOLEAN, "CASE WHEN {0} IS NOT NULL THEN"
             " exists({1}, __e -> coalesce(array_contains({0}, __e), false)) END"),
)  # fmt: skip
