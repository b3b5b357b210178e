"""Types that meet: what PostgreSQL compares or widens by itself, and literals of no type.

Numbers meet in comparisons, in CASE, COALESCE, IN and in set operations; so do dates and times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from net.kinds import COMPARISONS, LITERALS
from net.tree import Node
from net.values import simple

if TYPE_CHECKING:
    from net.generate import Generator, Scope

FAMILIES: Final = (("small", "int", "big", "num", "real", "float"), ("date", "ts", "tz"))
"""Each widens to those after it."""

UNTYPED: Final[dict[str, tuple[str, ...]]] = {
    "int": ("'1'", "' 3 '", "'-1'", "null"),
    "big": ("'1000000000000'", "'0'", "null"),
    "num": ("'1.50'", "'1'", "'1.505'", "' 2e3 '", "null"),
    "text": ("'x'", "''", "null"),
    "bool": ("'t'", "'off'", "null"),
    "date": ("'2024-02-29'", "null"),
    "ts": ("'2024-03-01'", "'1970-01-01 00:00:01'", "null"),
    "float": ("'NaN'", "'0.5'", "'-Infinity'", "null"),
    "small": ("'1'", "'32767'", "null"),
    "real": ("'0.5'", "'Infinity'", "null"),
    "tz": ("'2024-03-31 01:30:00+00'", "null"),
    "iv": ("'1 mon'", "'30 days'", "'PT2H4.5S'", "null"),
    "bytes": (r"'\x78'", "null"),
    "arr": ("'{1,2}'", "'{}'", "null"),
    "texts": ("'{x,NULL}'", "'{}'", "null"),
}


def family(kind: str) -> tuple[str, ...]:
    return next((f for f in FAMILIES if kind in f), (kind,))


def narrower(g: Generator, kind: str) -> str:
    """Return a type that widens to ``kind``, or ``kind``."""
    of = family(kind)
    return g.choose(*of[: of.index(kind) + 1])


def cousin(g: Generator, kind: str) -> str:
    """Return a type that compares with ``kind``."""
    return g.choose(*family(kind))


def untyped(g: Generator, kind: str) -> Node:
    """Return a literal that has the type of what it meets."""
    return Node("untyped", [g.choose(*UNTYPED.get(kind, ("null",)))])


def value(g: Generator, kind: str, scope: Scope) -> Node:
    """Return CASE, COALESCE or GREATEST, whose parts are of unlike types that make ``kind``."""
    sort, plain = f"e:{kind}", LITERALS[kind][0]
    a, b = simple(g, kind, scope), simple(g, narrower(g, kind), scope)
    if g.chance(0.25):
        b = untyped(g, kind)
    if g.chance(0.5):
        a, b = b, a
    shape = g.choose("coalesce", "case", "greatest")
    if shape == "case" or (shape == "greatest" and kind in {"arr", "texts", "json"}):
        test = g.condition(scope, 0)
        return Node(sort, ["case when ", test, " then ", a, " else ", b, " end"], plain)
    if shape == "greatest":
        return Node(sort, [g.choose("greatest(", "least("), a, ", ", b, ")"], plain)
    twin = ["case when ", a, " is not null then ", a, " else ", b, " end"]
    return Node(sort, ["coalesce(", a, ", ", b, ")"], plain, twin)


def condition(g: Generator, kind: str, scope: Scope) -> Node:
    """Return a comparison of unlike types, or with a literal of none."""
    a = simple(g, kind, scope)
    b, c = (
        untyped(g, kind) if g.chance(0.3) else simple(g, cousin(g, kind), scope) for _ in range(2)
    )
    op = g.choose(*COMPARISONS)
    shape = g.choose("op", "op", "in", "between", "symmetric", "not distinct", "values", "when")
    twin = None
    match shape:
        case "op":
            parts = [a, f" {op} ", b]
        case "in":
            parts = [a, g.choose(" in (", " not in ("), b, ", ", c, ")"]
        case "between":
            parts = [a, " not between ", b, " and ", c]
            twin = ["(", a, " < ", b, " or ", a, " > ", c, ")"]
        case "symmetric":
            parts = [a, " between symmetric ", b, " and ", c]
            twin = ["(", a, " between ", b, " and ", c, " or ", a, " between ", c, " and ", b, ")"]
        case "not distinct":
            parts = [a, " is not distinct from ", b]
        case "values":
            inner = ["select * from (values (", a, "), (", simple(g, kind, scope), ")) as y"]
            parts = [simple(g, cousin(g, kind), scope), g.choose(" in (", " not in ("), *inner, ")"]
        case _:
            parts = ["case ", a, " when ", b, " then true when ", c, " then false end"]
    made = None if twin is None else ["(", *twin, ")"]
    return Node("e:bool", ["(", *parts, ")"], "true", made)
