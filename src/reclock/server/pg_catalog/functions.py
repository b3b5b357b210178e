"""Functions: ``pg_proc``, made of the table of functions that queries can call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from reclock.server.pg_catalog import oids
from reclock.server.pg_catalog.types import ARRAY_IN, ARRAY_RECEIVE, KINDS, RECEIVES
from reclock.sql.pg.oid import oid_of
from reclock.sql.plan.functions import FUNCTIONS
from reclock.sql.plan.functions.aggregate import AGGREGATES, WINDOWS, Aggregate
from reclock.sql.plan.functions.overload import AnyOf, Overload
from reclock.sql.types import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.server.pg_catalog.objects import Objects
    from reclock.server.pg_catalog.row import Row
    from reclock.sql.types import Type

_ANY: Final = 2276
_ANYELEMENT: Final = 2283
_INTERNAL: Final = {
    ARRAY_IN: "array_in", 751: "array_out", ARRAY_RECEIVE: "array_recv", 2401: "array_send",
    **dict(RECEIVES.values()),
}  # fmt: skip
_OPERATORS: Final = frozenset("+-*/%^=<>~!@#&|?.([ ")


@dataclass(frozen=True, slots=True)
class Function:
    """A function for certain types; ``kind`` is f, a or w."""

    oid: int
    name: str
    kind: str
    arguments: tuple[int, ...]
    result: int
    variadic: bool = False
    volatile: bool = False

    @property
    def arguments_text(self) -> str:
        """The arguments as they are shown."""
        return ", ".join(KINDS[oid].title for oid in self.arguments)


@cache
def functions() -> tuple[Function, ...]:
    """Return all functions that can be called by a name."""
    found: list[Function] = [
        Function(oid, name, "f", (_ANY,), _ANY) for oid, name in _INTERNAL.items()
    ]
    scalars = [overload for overloads in FUNCTIONS.values() for overload in overloads]
    listed: list[tuple[str, Overload | Aggregate]] = [
        *(("f", overload) for overload in scalars),
        *(("a", aggregate) for aggregate in AGGREGATES),
        *(("w", window) for window in WINDOWS),
    ]
    for number, (kind, overload) in enumerate(listed, oids.FUNCTIONS):
        if _OPERATORS & set(overload.name):
            continue
        arguments = tuple(map(_oid, overload.parameters))
        result = _ANYELEMENT if callable(overload.result) else _oid(overload.result)
        variadic = isinstance(overload, Overload) and overload.variadic
        volatile = isinstance(overload, Overload) and overload.volatile
        made = Function(number, overload.name, kind, arguments, result, variadic, volatile)
        found.append(made)
    return tuple(found)


def _oid(parameter: Type | AnyOf | Callable[..., Type]) -> int:
    if isinstance(parameter, AnyOf) or callable(parameter) or parameter == UNKNOWN:
        return _ANY
    return oid_of(parameter)


def pg_proc(objects: Objects) -> Iterator[Row]:
    """Yield functions."""
    for function in functions():
        yield {
            "oid": function.oid,
            "proname": function.name,
            "pronamespace": oids.PG_CATALOG,
            "proowner": objects.owner,
            "prolang": oids.LANGUAGE,
            "procost": 1.0,
            "provariadic": _ANY if function.variadic else 0,
            "prokind": function.kind,
            "proisstrict": True,
            "provolatile": "s" if function.volatile else "i",
            "proparallel": "s",
            "pronargs": len(function.arguments),
            "prorettype": function.result,
            "proargtypes": list(function.arguments),
            "prosrc": function.name,
        }


def pg_aggregate(objects: Objects) -> Iterator[Row]:
    """Yield aggregates."""
    del objects
    for function in functions():
        if function.kind == "a":
            yield {"aggfnoid": function.oid, "aggkind": "n"}
