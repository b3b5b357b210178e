"""Values of every type and conditions, for ``generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from net.calls import MORE, OF, RARE
from net.kinds import ANY, COMPARISONS, LITERALS, NAMES, UNORDERED, literal
from net.tree import Node

if TYPE_CHECKING:
    from net.generate import Generator, Scope


def value(  # noqa: PLR0911  # one per form
    g: Generator, kind: str, scope: Scope, depth: int, *, constant: bool = True
) -> Node:
    """Return an expression of that type."""
    sort, plain = f"e:{kind}", LITERALS[kind][0]
    refs = [c.text for c in scope if c.kind == kind]
    shape = g.random.random()
    if depth and shape < 0.12:
        return scalar_query(g, kind, scope, depth - 1)
    if refs and shape < 0.65:
        return Node(sort, [g.choose(*refs)], plain)
    if constant and shape < 0.72:
        if g.chance(0.15):
            return Node(sort, [f"null::{NAMES[kind]}"], plain)
        return Node(sort, [literal(g, kind)], plain)

    def sub(of: str = kind) -> Node:
        return simple(g, of, scope)

    if g.wide and shape < 0.76:
        return g.mixed(kind, scope)
    if shape < 0.86 and g.chance(0.6):
        return _general(g, kind, scope, depth, sub)
    made = _call(g, kind)
    return Node(sort, [sub(p[1:]) if p.startswith("@") else p for p in made], plain)


def _call(g: Generator, kind: str) -> tuple[str, ...]:
    """Return the pieces of a call that gives ``kind``."""
    if not g.wide:
        return g.choose(*OF[kind])
    if kind in RARE and g.chance(0.1):
        return g.choose(*RARE[kind])
    return g.choose(*OF[kind], *MORE.get(kind, ()))


def simple(g: Generator, kind: str, scope: Scope) -> Node:
    """Return a column, a literal, or one step more."""
    refs = [c.text for c in scope if c.kind == kind]
    plain = LITERALS[kind][0]
    if g.nests():
        return scalar_query(g, kind, scope, 0)
    if refs and g.chance(0.75):
        return Node(f"e:{kind}", [g.choose(*refs)], plain)
    if g.chance(0.7):
        return Node(f"e:{kind}", [literal(g, kind)], plain)
    made = _call(g, kind)
    leaves = {k: [c.text for c in scope if c.kind == k] or LITERALS[k] for k in NAMES}
    parts = [
        Node(f"e:{p[1:]}", [g.choose(*leaves[p[1:]])], LITERALS[p[1:]][0])
        if p.startswith("@")
        else p
        for p in made
    ]
    return Node(f"e:{kind}", parts, plain)


def typed(g: Generator, kind: str, scope: Scope) -> Node:
    """Return what has the type by itself, as an unknown literal has not."""
    return Node(f"e:{kind}", ["cast(", simple(g, kind, scope), f" as {NAMES[kind]})"])


def _general(g: Generator, kind: str, scope: Scope, depth: int, sub) -> Node:
    """Return what there is for every type: CASE, COALESCE, NULLIF, GREATEST."""
    sort, plain = f"e:{kind}", LITERALS[kind][0]
    a, b = sub(), sub()
    shape = g.choose("coalesce", "nullif", "case", "case", "when", "greatest")
    if shape == "coalesce":
        twin = ["case when ", a, " is not null then ", a, " else ", b, " end"]
        return Node(sort, ["coalesce(", a, ", ", b, ")"], plain, twin)
    if shape == "nullif" and kind not in UNORDERED:
        twin = ["case when ", a, " = ", b, " then null else ", a, " end"]
        return Node(sort, ["nullif(", a, ", ", b, ")"], plain, twin)
    if shape == "greatest" and kind not in UNORDERED:
        return Node(sort, [g.choose("greatest(", "least("), a, ", ", b, ")"], plain)
    if shape == "when":
        of = g.choose(*ANY)
        x, y = sub(of), sub(of)
        twin = ["case when ", x, " = ", y, " then ", a, " else ", b, " end"]
        return Node(sort, ["case ", x, " when ", y, " then ", a, " else ", b, " end"], plain, twin)
    test = condition(g, scope, depth)
    last = [" else ", b] if g.chance(0.7) else []
    return Node(sort, ["case when ", test, " then ", a, *last, " end"], plain)


def scalar_query(g: Generator, kind: str, scope: Scope, depth: int) -> Node:
    """Return a subquery of one value."""
    source, columns = g.from_list(depth, scope)
    where = g._where([*columns, *scope], depth)
    plain = LITERALS[kind][0]
    if g.chance(0.3):
        item = value(g, kind, [*columns, *scope], 0)
        made = ["(select ", item, " as o from ", source, where, " order by o limit 1)"]
        return Node(f"e:{kind}", made, plain)
    item = g.aggregate(kind, columns)
    return Node(f"e:{kind}", ["(select ", item, " from ", source, where, ")"], plain)


def condition(g: Generator, scope: Scope, depth: int) -> Node:  # noqa: PLR0912, PLR0915  # one per form
    """Return a condition."""
    of = g.choose(*ANY)

    def sub(kind: str = of) -> Node:
        return simple(g, kind, scope)

    if depth and g.chance(0.35):
        return _query_condition(g, scope, depth - 1, of, sub)
    a, b, c = sub(), sub(), sub()
    op = g.choose(*COMPARISONS)
    shape = g.choose(*range(18 if g.wide else 16))
    if shape == 16:
        return g.mixed_condition(of, scope)
    parts: list[str | Node]
    twin: list[str | Node] | None = None
    if shape <= 3:
        right = value(g, of, scope, depth) if depth else b
        parts = [a, f" {op} ", right]
    elif shape == 4:
        parts = [a, g.choose(" is null", " is not null")]
    elif shape == 5:
        parts = [a, " in (", b, ", ", c, g.choose("", ", null"), ")"]
        if str(parts[-2]) == "":
            twin = ["(", a, " = ", b, " or ", a, " = ", c, ")"]
    elif shape == 6:
        parts = [a, " not in (", b, ", ", c, ")"]
        twin = ["(", a, " <> ", b, " and ", a, " <> ", c, ")"]
    elif shape == 7:
        parts = [a, " is distinct from ", b]
        twin = ["not coalesce(", a, " = ", b, ", ", a, " is null and ", b, " is null)"]
    elif shape == 8:
        x, pattern = sub("text"), g.choose("x%", "%x", "_", "%", "a\\%%", "")
        word = g.choose("like", "not like", "ilike", *(("not ilike",) if g.wide else ()))
        parts = [x, f" {word} ", sub("text") if g.wide and g.chance(0.25) else f"'{pattern}'"]
    elif shape == 9:
        parts = ["not (", condition(g, scope, 0), ")"]
    elif shape == 10:
        word = g.choose("or", "and")
        x, y = condition(g, scope, 0), condition(g, scope, 0)
        parts = ["(", x, f" {word} ", y, ")"]
        other = "and" if word == "or" else "or"
        twin = ["(not (not (", x, f") {other} not (", y, ")))"]
    elif shape == 11:
        parts = [a, " between ", b, " and ", c]
        twin = ["(", a, " >= ", b, " and ", a, " <= ", c, ")"]
    elif shape == 12:
        x, y = sub("int"), sub("int")
        if g.chance(0.95):
            parts = ["(", a, ", ", x, ") = (", b, ", ", y, ")"]
            twin = ["(", a, " = ", b, " and ", x, " = ", y, ")"]
        else:
            parts = ["(", a, ", ", x, ") < (", b, ", ", y, ")"]
            twin = ["(", a, " < ", b, " or (", a, " = ", b, " and ", x, " < ", y, "))"]
    elif shape == 13:
        parts = [
            "(",
            condition(g, scope, 0),
            g.choose(") is true", ") is not true", ") is unknown"),
        ]
        parts = ["(", *parts, ")"]
    elif shape == 17:
        x, y, z = sub("int"), sub("int"), sub("int")
        word = g.choose("in", "not in")
        parts = ["(", a, ", ", x, f") {word} ((", b, ", ", y, "), (", c, ", ", z, "))"]
        pairs = ["(", a, " = ", b, " and ", x, " = ", y, " or ", a, " = ", c, " and ", x, " = "]
        twin = ["not " if word == "not in" else "", *pairs, z, ")"]
    elif shape == 14:
        x, y = sub("int"), sub("arr")
        parts = [x, f" {op} {g.choose('any', 'all', 'some')} (", y, ")"]
    else:
        parts = [sub("bool")]
    return Node("e:bool", ["(", *parts, ")"], "true", None if twin is None else ["(", *twin, ")"])


def _query_condition(g: Generator, scope: Scope, depth: int, of: str, sub) -> Node:
    a = sub()
    inner, _ = g.query(depth, scope, [of])
    op, name = g.choose(*COMPARISONS), g.name()
    shape = g.choose("exists", "not exists", "in", "not in", "any", "all", "pair", "or")
    twin: list[str | Node] | None = None
    parts: list[str | Node]
    if shape == "exists":
        parts = ["exists (", inner, ")"]
        twin = ["(select count(*) from (", inner, f") {name}) > 0"]
    elif shape == "not exists":
        parts = ["not exists (", inner, ")"]
        twin = ["(select count(*) from (", inner, f") {name}) = 0"]
    elif shape == "in":
        parts, twin = [a, " in (", inner, ")"], [a, " = any (", inner, ")"]
    elif shape == "not in":
        parts, twin = [a, " not in (", inner, ")"], [a, " <> all (", inner, ")"]
    elif shape == "pair":
        inner, _ = g.query(depth, scope, [of, "int"])
        parts = ["(", a, ", ", sub("int"), f") {g.choose('in', 'not in')} (", inner, ")"]
    elif shape == "or":
        parts = ["exists (", inner, ") or ", condition(g, scope, 0)]
    else:
        parts = [a, f" {op} {shape} (", inner, ")"]
    return Node("e:bool", ["(", *parts, ")"], "true", None if twin is None else ["(", *twin, ")"])
