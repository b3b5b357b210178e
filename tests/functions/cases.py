"""Calls of every row of the function table: an expression, and the types of its arguments.

A row with a parameter that takes many types is called with some of each. Where PostgreSQL wants a
literal, or reclock does (fields, patterns, zones), the expression has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from reclock.sql import types as t
from reclock.sql.plan.functions import FUNCTIONS
from reclock.sql.plan.functions.overload import AnyOf

from .edges import EDGES, NUMERIC_SMALL, NUMERIC_WHOLE, NUMERIC_WIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sql.plan.functions.overload import Overload

NUMERICS: Final = (NUMERIC_SMALL, NUMERIC_WHOLE, NUMERIC_WIDE)
ARRAYS: Final = tuple(kind for kind in EDGES if isinstance(kind, t.Array))
COMPARED: Final = (
    t.BOOLEAN, t.INTEGER, t.BIGINT, t.REAL, t.DOUBLE, NUMERIC_SMALL, t.TEXT, t.BYTEA, t.DATE,
    t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL, t.Array(t.INTEGER), t.Array(t.DOUBLE),
    t.Array(t.INTERVAL),
)  # fmt: skip
SAME: Final = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from", "nullif",
     "greatest", "least", "@>", "&&", "array_cat"}
)  # fmt: skip
NOT_POSTGRESQL: Final = frozenset(
    {"mz_now", "mz_timestamp", "single_row", "array_contains", "like pattern", "like escape", "now",
     "current_date", "localtimestamp"}
)  # fmt: skip
"""Rows that PostgreSQL has not, that have no name, or that are not functions of their arguments."""

QUALIFIERS: Final = (
    "year", "month", "day", "hour", "minute", "second", "year to month", "day to hour",
    "day to minute", "day to second", "hour to minute", "hour to second", "minute to second",
    "second(2)", "(3)", "day to second(0)",
)  # fmt: skip
_LITERALS: Final = {
    "~": [f"{{0}} ~ '{p}'" for p in ("a", "^.b", "[A-Z]+", "^$")],
    "~*": [f"{{0}} ~* '{p}'" for p in ("A", "h.*O", "\u00dc")],
    "to_char": [
        f"to_char({{0}}, '{p}')"
        for p in (
            "YYYY-MM-DD HH24:MI:SS", "HH12:MI AM", "MS US", "DDD [Mon]", "#{{DD}}", "Month", "SSSS",
        )
    ],
    "timezone": [f"timezone('{z}', {{0}})" for z in ("UTC", "Europe/Berlin", "America/New_York")],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An expression over ``{0}``, ``{1}``, … and the types of those."""

    expression: str
    kinds: tuple[t.Type, ...]

    def __str__(self) -> str:
        return f"{self.expression} of {', '.join(map(str, self.kinds))}"


def cases() -> Iterator[Case]:
    """Return all calls of scalar functions, operators and casts."""
    for overloads in FUNCTIONS.values():
        for overload in overloads:
            if overload.name not in NOT_POSTGRESQL and not _of_today(overload):
                yield from _calls(overload)
    yield from casts()


def _of_today(overload: Overload) -> bool:
    return overload.name == "age" and len(overload.parameters) == 1


def _calls(overload: Overload) -> Iterator[Case]:
    for kinds in _kinds(overload):
        for expression in _expressions(overload, len(kinds)):
            used = tuple(kind for kind in kinds if kind != t.TEXT) or (t.TEXT,)
            yield Case(expression, used if overload.name in _LITERALS else kinds)


def _kinds(overload: Overload) -> Iterator[tuple[t.Type, ...]]:
    choices: list[tuple[t.Type, ...]] = []
    for parameter in overload.parameters:
        if not isinstance(parameter, AnyOf):
            choices.append((parameter,))
        elif parameter.name == "numeric":
            choices.append(NUMERICS)
        elif parameter.name == "anyarray":
            choices.append(ARRAYS)
        else:
            choices.append(COMPARED)
    if overload.name in SAME:
        yield from ((kind,) * len(choices) for kind in choices[0])
    elif overload.name in {"array_append", "array_position"}:
        yield from ((kind, kind.element) for kind in ARRAYS if isinstance(kind, t.Array))
    elif overload.variadic:
        yield from ((*kinds, kinds[-1]) for kinds in product(*choices))
    else:
        yield from product(*choices)


def _expressions(overload: Overload, count: int) -> list[str]:  # noqa: PLR0911 - one per kind
    name = overload.name
    if name in _LITERALS and count == 2:
        return _LITERALS[name]
    if name.startswith("extract "):
        return [f"extract({name.split()[1]} from {{0}})"]
    if name.startswith("date_trunc "):
        return [f"date_trunc('{name.split()[1]}', {{0}})"]
    if name == "subscript":
        return ["({0})[{1}]"]
    if name in {"is null", "is true", "is false"}:
        return [f"({{0}} {name})"]
    if name in {"like", "ilike"}:
        return [f"({{0}} {name} {{1}})", f"({{0}} {name} {{1}} escape 'X')"]
    if name in {"is distinct from", "is not distinct from"} or not name[0].isalpha():
        return [f"({name} {{0}})" if count == 1 else f"({{0}} {name} {{1}})"]
    if name == "not":
        return ["(not {0})"]
    holes = ", ".join(f"{{{i}}}" for i in range(count))
    return [f"{name}({holes})"]


def casts() -> Iterator[Case]:
    """Return casts between every two types."""
    for source, target in product(EDGES, EDGES):
        if source != target:
            yield Case(f"({{0}})::{target}", (source,))
    for fields in QUALIFIERS:
        for source in (t.TEXT, t.INTERVAL):
            yield Case(f"cast({{0}} as interval {fields})", (source,))
