"""The functions that a query over the catalog can call, and what macros need.

What is neither here nor in ``BUILTINS`` does not exist in a query over the catalog: nothing of
DuckDB can be called that is not listed.

Tests: tests/sql/pg/test_translate.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.sql.pg.macros import BODIES
from reclock.sql.pg.types import ColumnType, column_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BUILTINS: Final = frozenset(
    [
        "abs",
        "array",
        "array_agg",
        "array_append",
        "array_cat",
        "array_position",
        "array_to_string",
        "avg",
        "bool_and",
        "bool_or",
        "ceil",
        "coalesce",
        "concat",
        "concat_ws",
        "count",
        "dense_rank",
        "first_value",
        "floor",
        "generate_series",
        "generate_subscripts",
        "greatest",
        "lag",
        "last_value",
        "lead",
        "least",
        "left",
        "length",
        "lower",
        "ltrim",
        "max",
        "md5",
        "min",
        "mod",
        "nullif",
        "rank",
        "regexp_replace",
        "replace",
        "reverse",
        "right",
        "round",
        "row",
        "row_number",
        "rtrim",
        "split_part",
        "starts_with",
        "string_agg",
        "strpos",
        "substr",
        "substring",
        "sum",
        "trim",
        "unnest",
        "upper",
    ]
)
"""What DuckDB calls by the same name, and means the same by."""

RENAMED: Final = {
    "btrim": "trim",
    "char_length": "length",
    "character_length": "length",
    "every": "bool_and",
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "string_to_array": "string_split",
    "cardinality": "len",
}

SESSION: Final = frozenset(
    {"current_catalog", "current_database", "current_role", "current_schema", "current_user",
     "pg_backend_pid", "session_user", "user", "version"}
)  # fmt: skip
"""What the session knows, and the text only asks for."""

EFFECTS: Final = frozenset({"pg_cancel_backend", "pg_terminate_backend"})
"""Functions that do something to another session, given its number."""

_LOOKUPS: Final = """
class_name: __k oid, __v text
class_oid: __k text, __v oid
class_visible: __k oid
comment: __k oid, __n int4, __v text
constraint_text: __k oid, __v text
function_arguments: __k oid, __v text
function_result: __k oid, __v text
index_text: __k oid, __n int4, __v text
namespace_name: __k oid, __v text
namespace_oid: __k text, __v oid
privilege: __k oid, __r text, __p text
proc_name: __k oid, __v text
proc_oid: __k text, __v oid
role_name: __k oid, __v text
role_oid: __k text, __v oid
serial_sequence: __k oid, __c text, __v text
setting: __k text, __v text
super_role: __r text
type_name: __k oid, __v text
type_oid: __k text, __v oid
view_text: __k oid, __v text
"""
LOOKUPS: Final[Mapping[str, Mapping[str, ColumnType]]] = {
    name: {c.split()[0]: column_type(c.split()[1]) for c in columns.split(", ")}
    for name, _, columns in (line.partition(": ") for line in _LOOKUPS.strip().split("\n"))
}
"""What macros look up; ``reclock.server.pg_catalog`` makes the rows."""

TABLE_FUNCTIONS: Final = frozenset(
    {"pg_available_extensions", "pg_get_keywords", "pg_timezone_names"}
)
"""Functions without arguments that are relations here."""

_CALLED: Final = re.compile(r"\bfn\.(\w+)")
_READ: Final = re.compile(r"\blookup\.(\w+)")


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro: how it is made, the look-up tables that it reads, the macros that it calls."""

    name: str
    bodies: tuple[str, ...]

    @property
    def definition(self) -> str:
        """The statement that makes it."""
        return f"CREATE MACRO fn.{self.name} {', '.join(self.bodies)}"

    @property
    def lookups(self) -> frozenset[str]:
        """What it reads."""
        return frozenset(_READ.findall(self.definition))

    @property
    def calls(self) -> frozenset[str]:
        """The macros that it needs."""
        return frozenset(_CALLED.findall(self.definition)) - {self.name}


MACROS: Final[Mapping[str, Macro]] = {name: Macro(name, bodies) for name, bodies in BODIES.items()}
OWN: Final = frozenset({"class_in", "class_out", "type_in", "type_out", "namespace_in",
                        "namespace_out", "role_in", "role_out", "proc_in", "proc_out",
                        "expandarray", "setting"})  # fmt: skip
"""Macros that only casts and rewrites call."""


def with_needed(names: frozenset[str]) -> Iterator[Macro]:
    """Yield macros and all that they call, those first that others call."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[Macro]:
        if name not in done:
            done.add(name)
            for needed in sorted(MACROS[name].calls):
                yield from visit(needed)
            yield MACROS[name]

    for name in sorted(names):
        yield from visit(name)
