"""The table of functions: data grouped by subject, and how a call finds its row.

Resolution follows PostgreSQL: the overload whose parameters need the cheapest implicit
conversions wins; a quoted literal or NULL (type unknown) fits anything and prefers text.
A function that is not in the table is not supported (0A000) if PostgreSQL has it, else it does not
exist (42883, with the nearest names). Nothing is passed through to Spark, because only the table
says which rows would be errors.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.errors import NotSupported, StatementError, UndefinedName
from reclock.sql.plan.functions import (
    arithmetic,
    datetime,
    interval,
    logic,
    maths,
    postgres,
    structure,
    temporal,
    text,
)
from reclock.sql.plan.functions.aggregate import (
    AGGREGATE_SYNONYMS,
    AGGREGATES,
    WINDOWS,
    Aggregate,
)
from reclock.sql.plan.functions.overload import AnyOf, Overload, Parameter
from reclock.sql.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    UNKNOWN,
    Numeric,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_SUBJECTS = (arithmetic, logic, maths, text, interval, datetime, temporal, structure)
FUNCTIONS: Final[dict[str, tuple[Overload, ...]]] = {}
for _subject in _SUBJECTS:
    for _overload in _subject.OVERLOADS:
        FUNCTIONS[_overload.name] = (*FUNCTIONS.get(_overload.name, ()), _overload)

SYNONYMS: Final = text.SYNONYMS

TABLE_FUNCTIONS: Final = frozenset(
    {"generate_series", "unnest", "json_array_elements", "jsonb_array_elements",
     "json_array_elements_text", "jsonb_array_elements_text", "regexp_split_to_table"}
)  # fmt: skip
"""What stands in FROM."""

FORBIDDEN: Final = frozenset(
    {"random", "rand", "randn", "uuid", "gen_random_uuid", "reflect", "java_method",
     "try_reflect", "input_file_name", "monotonically_increasing_id", "spark_partition_id",
     "clock_timestamp", "statement_timestamp", "timeofday", "nextval", "setseed", "shuffle",
     "current_time", "localtime"}
)  # fmt: skip
"""Not a function of the data: a view over one could not be maintained."""


def implicit_cost(source: Type, target: Parameter) -> float | None:  # noqa: PLR0911  # one per case
    """Return how dear it is to use a ``source`` where ``target`` is wanted, None if it is not."""
    if isinstance(target, AnyOf):
        if source == UNKNOWN:
            return 0.5
        if target.accepts(source):
            return 0.1
        if target.name == "numeric" and source in {SMALLINT, INTEGER, BIGINT}:
            return 3
        return None
    if source == target:
        return 0
    if source == UNKNOWN:
        return 0.2 if target == TEXT else 0.6
    if isinstance(source, Numeric) and target in {REAL, DOUBLE}:
        return 2
    if isinstance(source, Numeric) and isinstance(target, Numeric):
        return 0.1
    return postgres.WIDER.get(source, {}).get(target)


_F = TypeVar("_F", Overload, Aggregate)


def _parameters(candidate: Overload | Aggregate, count: int) -> tuple[Parameter, ...] | None:
    given = candidate.parameters
    if isinstance(candidate, Overload) and candidate.variadic and count >= len(given):
        return (*given, *(given[-1] for _ in range(count - len(given))))
    return given if len(given) == count else None


def _cheapest(candidates: tuple[_F, ...], types: tuple[Type, ...]) -> _F | None:
    best: tuple[float, _F] | None = None
    for candidate in candidates:
        parameters = _parameters(candidate, len(types))
        if parameters is None:
            continue
        costs = [implicit_cost(t, p) for t, p in zip(types, parameters, strict=True)]
        if any(c is None for c in costs):
            continue
        cost = sum(c for c in costs if c is not None)
        if best is None or cost < best[0]:
            best = (cost, candidate)
    return None if best is None else best[1]


def find_function(name: str, types: tuple[Type, ...], position: int | None = None) -> Overload:
    """Return the overload of ``name`` for arguments of ``types``."""
    wanted = SYNONYMS.get(name, name)
    candidates = FUNCTIONS.get(wanted, ())
    found = _cheapest(candidates, types)
    if found is None:
        raise _undefined(name, types, bool(candidates), FUNCTIONS, position)
    return found


def parameters_of(found: Overload | Aggregate, count: int) -> tuple[Parameter, ...]:
    """Return one parameter per argument."""
    return _parameters(found, count) or ()


def is_aggregate(name: str) -> bool:
    """Return whether ``name`` is an aggregate function."""
    return name in AGGREGATE_SYNONYMS or any(a.name == name for a in AGGREGATES)


def is_window_only(name: str) -> bool:
    """Return whether ``name`` is a function that needs OVER."""
    return any(w.name == name for w in WINDOWS)


def find_aggregate(
    name: str, types: tuple[Type, ...], position: int | None = None, *, window: bool = False
) -> Aggregate:
    """Return the aggregate (or, with ``window``, window function) for arguments of ``types``."""
    wanted = AGGREGATE_SYNONYMS.get(name, name)
    table = (*WINDOWS, *AGGREGATES) if window else AGGREGATES
    candidates = tuple(a for a in table if a.name == wanted)
    found = _cheapest(candidates, types)
    if found is None:
        raise _undefined(name, types, bool(candidates), {a.name for a in table}, position)
    return found


def undefined(name: str, types: tuple[Type, ...], position: int | None) -> StatementError:
    """Return the error for a call that no row of the table takes."""
    return _undefined(name, types, name in FUNCTIONS, FUNCTIONS, position)


def _undefined(
    name: str, types: tuple[Type, ...], known: bool, names: Iterable[str], position: int | None
) -> StatementError:
    inside = ", ".join(str(t) for t in types)
    what = "function" if name[0].isalpha() and name not in _WORD_OPERATORS else "operator"
    if postgres.has(name, types):
        message = f"{what} {name}({inside}) is not supported"
        hint = _BESIDE if name in TABLE_FUNCTIONS else _OTHERS if known else LISTED
        return NotSupported(message, hint=hint, position=position)
    message = f"{what} {name}({inside}) does not exist"
    if known:
        hint = "no version of it takes these argument types; you may need casts"
    else:
        near = get_close_matches(name, list(names), n=3)
        hint = f"perhaps you meant {', '.join(near)}" if near else _NONE_NEAR
    return UndefinedName(message, hint=hint, code="42883", position=position)


_BESIDE = "write it in FROM, after the relation whose columns it takes: FROM t, unnest(t.a) AS x"
_OTHERS = "there is one for other arguments; docs/sql/functions.md lists them"
LISTED = "docs/sql/functions.md lists what there is"
_NONE_NEAR = "functions have the names and arguments that PostgreSQL gives them"
_WORD_OPERATORS = {"like", "ilike", "not"}
