"""Further forms of SELECT, for ``generate``: windows over groups, tops, stars, chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from net import aggregates, mixed
from net.kinds import LITERALS, UNORDERED
from net.tree import Items, Node, maybe

if TYPE_CHECKING:
    from net.generate import Generator, Scope


def chain(g: Generator, depth: int, outer: Scope, kinds: list[str], sort: str) -> Node:
    """Return set operations without parentheses: INTERSECT binds more tightly than the others."""
    parts: list[str | Node] = []
    for at in range(3):
        of = [mixed.narrower(g, k) for k in kinds] if at else kinds
        if at:
            operator = g.choose("union", "except", "intersect", "union") + g.choose("", " all")
            parts.append(f" {operator} ")
        parts += ["(", g.query(depth - 1, outer, of)[0], ")"]
    keys = ", ".join(str(i + 1) for i in range(len(kinds)))
    if not {*kinds} & UNORDERED and g.chance(0.5):
        parts.append(maybe(f" order by {keys} limit {g.choose(1, 2, 3)}"))
    return Node(sort, parts)


def top(  # noqa: PLR0917  # what a SELECT has been made of so far
    g: Generator, source: Node, where: Node, columns: Scope, items: list, sort: str
) -> Node:
    """Return the first rows by what is not shown: an order of all columns that there are."""
    keys = [f"{aggregates.whole_key(c)}{g.choose('', ' desc', ' nulls first')}" for c in columns]
    g.random.shuffle(keys)
    limit = g.choose(" limit 1", " limit 2", " fetch first 2 rows only", " limit 3 offset 1")
    parts = ["select ", *items, " from ", source, where, f" order by {', '.join(keys)}", limit]
    return Node(sort, ["select * from (", *parts, f") {g.name()}"])


def windows_of_groups(  # noqa: PLR0917  # what a SELECT has been made of so far
    g: Generator, source: Node, where: Node, columns: Scope, kinds: list[str], sort: str
) -> Node:
    """Return window functions of aggregates, over the groups in a whole order of their keys."""
    keys = [(g._key(k, columns), k) for k in g.choose(("int",), ("text", "int"), ("num", "bool"))]
    listed = Items([k for k, _ in keys])
    first = keys[0][0]
    ways = ("", " desc", " nulls first", " desc nulls last")
    order: list[str | Node] = []
    for at, (key, _) in enumerate(keys):
        order += [", " if at else "order by ", key, g.choose(*ways)]
    by: list[str | Node] = ["partition by ", first, " "] if len(keys) > 1 and g.chance(0.5) else []
    total: list[str | Node] = [*by, *order]
    named = g.chance(0.4)
    items: list[str | Node] = []
    for at, kind in enumerate(kinds):
        fitting = [k for k, of in keys if of == kind]
        inner = g.aggregate(kind, columns)
        frame = g.choose(
            "", "", " rows between 1 preceding and current row", " range unbounded preceding"
        )
        over = [f" over (w{frame})"] if named else [" over (", *total, frame, ")"]
        choices: list[list[str | Node]] = [
            ["lag(", inner, ")", *over], ["first_value(", inner, ")", *over],
            ["lead(", inner, ", 1, ", inner, ")", *over],
        ]  # fmt: skip
        if kind not in {"bool", "bytes", *UNORDERED}:
            choices += [["max(", inner, ")", *over], ["min(", inner, ")", *over]]
        if kind == "big":
            whole = [" over w"] if named else [" over (", *total, ")"]
            choices = [
                ["rank()", *whole], ["row_number()", *whole], ["count(*)", *over],
                ["cast(sum(count(*))", *over, " as bigint)"], ["dense_rank()", *whole],
            ]  # fmt: skip
        if kind == "num":
            choices.append(["sum(", inner, ")", *over])
        made: Node = Node(f"e:{kind}", g.choose(*choices), LITERALS[kind][0])
        if fitting and g.chance(0.4):
            made = g.choose(*fitting)
        items += [", " if at else "", made, f" as c{at}"]
    having = maybe(" having ", g.condition_of_groups(columns, [k for k, _ in keys]))
    window = [" window w as (", *total, ")"] if named else []
    parts = ["select ", *items, " from ", source, where, " group by ", listed]
    return Node(sort, [*parts, having if g.chance(0.3) else maybe(), *window])


def starred(g: Generator, depth: int, outer: Scope, left: Scope) -> tuple[Node, Scope]:
    """Return all columns of a join, by their places: those of USING and NATURAL come first."""
    from net.generate import Ref  # noqa: PLC0415 - it imports this module

    node, columns = g._item(depth, outer, left)
    seen = [c for c in columns if not c.name.endswith("?")]
    alias = g.name()
    names = ", ".join(f"c{i}" for i in range(len(seen)))
    made = [Ref(f"{alias}.c{i}", c.kind, f"c{i}") for i, c in enumerate(seen)]
    return Node("item", ["(select * from ", node, f") {alias} ({names})"]), made
