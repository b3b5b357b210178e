"""Aggregates and window functions, for ``generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from net.kinds import ANY, LITERALS, NAMES, UNORDERED, literal
from net.tree import Node
from net.values import simple, typed

if TYPE_CHECKING:
    from net.generate import Generator, Ref, Scope


SPREADS = ("stddev", "stddev_pop", "variance", "var_pop", "stddev_samp", "var_samp")
PAIRS = ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2")


def aggregate(  # noqa: PLR0912  # one case per type
    g: Generator, kind: str, scope: Scope
) -> list[str | Node] | None:
    """Return a call of an aggregate that gives ``kind``; None: min or max will do."""

    def sub(of: str) -> Node:
        return simple(g, of, scope)

    any_kind = g.choose(*ANY)
    choices: list[list[str | Node]] = []
    match kind:
        case "big":
            choices = [
                ["count(*", ")"], ["count(", sub(any_kind), ")"], ["sum(", sub("int"), ")"],
                ["count(distinct ", sub(any_kind), ")"], ["sum(distinct ", sub("int"), ")"],
                ["bit_or(", sub("big"), ")"],
            ]  # fmt: skip
            if g.wide:
                choices.append(["sum(", sub("small"), ")"])
        case "int":
            choices = [
                ["cast(count(", sub(any_kind), ") as int)"],
                ["max(", sub("int"), ")"], ["min(", sub("int"), ")"],
                ["bit_and(", sub("int"), ")"],
            ]  # fmt: skip
            if g.wide:
                choices += [["bit_xor(", sub("int"), ")"], ["max(distinct ", sub("int"), ")"]]
            if g.wide and g.chance(0.1):
                choices = [
                    ["percentile_disc(0.5) within group (order by ", sub("int"), ")"],
                    ["mode() within group (order by ", sub("int"), ")"],
                ]
        case "num":
            choices = [
                ["sum(", sub("num"), ")"], ["sum(", sub("big"), ")"], ["max(", sub("num"), ")"],
                ["round(avg(", sub("int"), "), 6)"], ["sum(distinct ", sub("num"), ")"],
                ["round(avg(", sub("num"), "), 6)"],
            ]  # fmt: skip
            if g.wide:
                choices.append(["round(avg(", sub("small"), "), 6)"])
                choices.append(["round(avg(distinct ", sub("int"), "), 6)"])
            if g.wide and g.chance(0.2):
                x, y = sub("int"), sub("small")
                name, given = g.choose(
                    *((n, [x]) for n in SPREADS), *((n, [x, ", ", y]) for n in PAIRS)
                )
                choices = [[f"cast({name}(", *given, ") as numeric(38, 6))"]]
        case "text":
            x, y = typed(g, "text", scope), sub("text")
            choices = [
                ["string_agg(", x, ", ',' order by ", x, ")"],
                ["string_agg(distinct ", x, ", ',' order by ", x, ")"],
                ["string_agg(", x, ", '-' order by ", x, " desc, ", y, ")"],
                ["max(", sub("text"), ")"],
            ]
        case "bool":
            choices = [["bool_and(", sub("bool"), ")"], ["bool_or(", sub("bool"), ")"],
                       ["every(", sub("bool"), ")"]]  # fmt: skip
        case "float":
            choices = [["sum(", sub("float"), ")"], ["avg(", sub("float"), ")"],
                       ["max(", sub("float"), ")"]]  # fmt: skip
            if g.wide and g.chance(0.2):
                choices = [["percentile_cont(0.25) within group (order by ", sub("int"), ")"]]
        case "real" if g.wide:
            choices = [["sum(", sub("real"), ")"], ["max(", sub("real"), ")"]]
        case "small" if g.wide:
            choices = [["bit_and(", sub("small"), ")"], ["min(", sub("small"), ")"]]
        case "iv":
            choices = [
                ["avg(" if g.wide else "sum(", sub("iv"), ")"],
                ["sum(", sub("iv"), ")"],
                ["min(", sub("iv"), ")"],
                ["max(", sub("iv"), ")"],
            ]
        case "json" | "bytes":
            choices = [[f"cast({literal(g, kind)} as {NAMES[kind]})"]]
        case "texts":
            x = typed(g, "text", scope)
            choices = [
                ["array_agg(", x, " order by ", x, ")"],
                ["array_agg(distinct ", x, " order by ", x, ")"],
            ]
        case "arr":
            x, y = sub("int"), sub("int")
            choices = [
                ["array_agg(", x, " order by ", x, ")"],
                ["array_agg(", x, " order by ", x, " desc nulls last)"],
                ["array_agg(distinct ", x, " order by ", x, ")"],
                ["array_agg(", x, " order by ", y, ", ", x, ")"],
            ]
    return g.choose(*choices) if choices else None


def additive(g: Generator, kind: str, scope: Scope, name: str) -> tuple[Node, str]:
    """Return an aggregate, and how that of all rows is made of those of parts, called ``name``."""

    def sub(of: str) -> Node:
        return simple(g, of, scope)

    extreme = g.choose("min", "max")
    choices: list[tuple[list[str | Node], str]] = [
        ([f"{extreme}(", sub("int" if kind == "bool" else kind), ")"], f"{extreme}({name})")
    ]
    match kind:
        case "big":
            total = f"cast(sum({name}) as bigint)"
            choices += [(["count(*", ")"], total), (["count(", sub(g.choose(*ANY)), ")"], total)]
            choices += [(["sum(", sub("int"), ")"], total)]
        case "num" | "float" | "iv":
            choices += [(["sum(", sub(kind), ")"], f"sum({name})")]
        case "bool":
            word = g.choose("bool_and", "bool_or")
            choices = [([f"{word}(", sub("bool"), ")"], f"{word}({name})")]
    parts, again = g.choose(*choices)
    return Node(f"e:{kind}", parts, LITERALS[kind][0]), again


def whole_order(g: Generator, scope: Scope) -> str:
    """Return a window in which only equal rows are peers."""
    every = [order_key(c.text, c.kind) for c in scope]
    g.random.shuffle(every)
    keys = ", ".join(f"{c}{g.choose('', ' desc', ' nulls first')}" for c in every)
    return f"{_partition(g, scope)}order by {keys}"


def order_key(text: str, kind: str) -> str:
    """Return what to order by: json has no order, its text has."""
    return f"cast({text} as text)" if kind == "json" else text


def whole_key(column: Ref) -> str:
    """Return what tells unlike values apart, equal intervals too."""
    return f"cast({column.text} as text)" if column.kind in {"json", "iv"} else column.text


def _partition(g: Generator, scope: Scope) -> str:
    return g.choose("", f"partition by {g.choose(*(c.text for c in scope))} ")


def window(g: Generator, kind: str, scope: Scope, whole: str) -> Node:
    """Return a call over a window; what depends on the order of rows is over ``whole``.

    That is one for all calls of a SELECT: the order of equal rows in two windows is not known.
    """
    by = _partition(g, scope)
    a = typed(g, kind, scope)
    key = typed(g, g.choose(*ANY), scope)
    frames = (
        "rows between 1 preceding and 1 following", "rows unbounded preceding",
        "rows between current row and unbounded following",
        "rows between unbounded preceding and unbounded following",
        "rows between 2 preceding and 1 preceding",
    )  # fmt: skip
    ranges = (
        "",
        " range unbounded preceding",
        " range between current row and unbounded following",
    )
    total: list[str | Node] = [f") over ({whole})"]
    framed: list[str | Node] = [f") over ({whole} {g.choose(*frames)})"]
    peers: list[str | Node] = [
        f") over ({by}order by ",
        key,
        f"{g.choose('', ' desc')}{g.choose(*ranges)})",
    ]
    plain: list[str | Node] = [f") over ({by.strip()})"]
    choices = [
        ["lag(", a, *total], ["lead(", a, ", 2", *total], ["first_value(", a, *framed],
        ["last_value(", a, *framed], ["nth_value(", a, ", 2", *framed],
        ["lag(", a, ", 1, ", typed(g, kind, scope), *total],
    ]  # fmt: skip
    if kind not in {"bool", "bytes", *UNORDERED}:
        choices += [["max(", a, *framed], ["min(", a, *peers], ["max(", a, *plain]]
    if kind == "big":
        n = simple(g, "int", scope)
        choices += [
            ["row_number(", *total], ["rank(", *peers], ["dense_rank(", *peers],
            ["count(*", *peers], ["sum(", n, *peers], ["sum(", n, *framed], ["count(*", *plain],
            ["row_number(", *total], ["rank(", *peers],
        ]  # fmt: skip
    if kind == "int":
        choices += [["ntile(2", *total], ["ntile(3", *total]]
    if kind == "num":
        choices += [["sum(", a, *framed], ["sum(", a, *peers]]
    if kind == "float":
        choices += [["sum(", a, *framed], ["cume_dist(", *peers], ["percent_rank(", *peers]]
    if g.wide and kind == "bool":
        choices += [["bool_or(", a, *framed], ["bool_and(", a, *peers]]
    if g.wide and kind == "iv":
        choices += [["sum(", a, *framed], ["sum(", a, *plain]]
    if g.wide and kind == "arr":
        choices.append(["array_agg(", typed(g, "int", scope), *framed])
    if g.wide and kind == "text":
        choices.append(["string_agg(", a, ", '-'", *framed])
    return Node(f"e:{kind}", g.choose(*choices), LITERALS[kind][0])
