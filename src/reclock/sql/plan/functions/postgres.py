"""What PostgreSQL has: a call of it that has no row in our table is not supported, 0A000.

What PostgreSQL has not either does not exist (42883), so a user can tell a mistake from a gap.
``postgres.txt`` has a line for each version of a function or operator: its name and the types of
its arguments; ``...`` after the last one says that it may be repeated. Resolution is PostgreSQL's,
but for which of several versions it takes: here one is enough.

Cost: the list is read when the first call is not found. Tests: tests/functions/test_catalogued.py,
which compares the list with a real PostgreSQL's.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from reclock.sql.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Array,
    Numeric,
    Record,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDER: Final[dict[Type, dict[Type, float]]] = {
    SMALLINT: {INTEGER: 1, BIGINT: 2, REAL: 4, DOUBLE: 5},
    INTEGER: {BIGINT: 1, REAL: 4, DOUBLE: 5},
    BIGINT: {REAL: 4, DOUBLE: 5},
    REAL: {DOUBLE: 1},
    DATE: {TIMESTAMP: 1, TIMESTAMPTZ: 2},
    TIMESTAMP: {TIMESTAMPTZ: 1},
}
"""What a type becomes where a wider one is wanted, and how dear that is."""

_ANY: Final = frozenset({
    '"any"', "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray",
})  # fmt: skip
_ARRAYS: Final = frozenset({"anyarray", "anycompatiblearray"})
_REPEATED: Final = " ..."


def has(name: str, types: tuple[Type, ...]) -> bool:
    """Return whether PostgreSQL has a function or operator for arguments of these types.

    >>> from reclock.sql.types import TEXT
    >>> has("to_char", (Numeric(5, 1), TEXT)), has("length", (INTEGER,)), has("lenght", (TEXT,))
    (True, False, False)
    """
    return any(_fits(version, types) for version in _catalogued().get(name, ()))


def knows(name: str) -> bool:
    """Return whether PostgreSQL has a function of this name."""
    return name in _catalogued()


@cache
def _catalogued() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    text = files(__package__).joinpath("postgres.txt").read_text()
    for line in text.splitlines()[1:]:
        name, _, inside = line.partition(" ")
        found[name] = (*found.get(name, ()), tuple(inside.split(", ")) if inside else ())
    return found


def _fits(version: tuple[str, ...], types: tuple[Type, ...]) -> bool:
    if version and version[-1].endswith(_REPEATED):
        last = version[-1].removesuffix(_REPEATED)
        version = (*version[:-1], *(last for _ in range(len(types) - len(version) + 1)))
    if len(version) != len(types) or not all(map(_takes, version, types)):
        return False
    alike = [
        (t.element if isinstance(t, Array) and kind in _ARRAYS else t, "compatible" in kind)
        for kind, t in zip(version, types, strict=True)
        if kind.startswith("any") and t != UNKNOWN
    ]
    return all(
        _name(a) == _name(b) or (loose and (_takes(_name(b), a) or _takes(_name(a), b)))
        for (a, _), (b, loose) in pairwise(alike)
    )


def _takes(kind: str, given: Type) -> bool:
    if given == UNKNOWN:
        return True
    if kind in _ANY:
        return not (kind.endswith("nonarray") and isinstance(given, Array))
    if kind in _ARRAYS:
        return isinstance(given, Array)
    if kind == "record":
        return isinstance(given, Record)
    if kind.endswith("[]"):
        return isinstance(given, Array) and _takes(kind[:-2], given.element)
    return (
        kind in {_name(given), *map(_name, WIDER.get(given, ()))}
        or (kind == "numeric" and given in {SMALLINT, INTEGER, BIGINT})
        or (kind == "double precision" and isinstance(given, Numeric))
    )


def _name(kind: Type) -> str:
    return "numeric" if isinstance(kind, Numeric) else str(kind)
