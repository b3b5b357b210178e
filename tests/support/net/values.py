"""Values of every type, conditions, aggregates and window functions, for ``generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from net.tree import Node

if TYPE_CHECKING:
    from net.generate import Generator, Scope

NAMES = {
    "int": "int", "big": "bigint", "num": "numeric(12, 2)", "text": "text", "bool": "boolean",
    "date": "date", "ts": "timestamp", "float": "double precision", "arr": "int[]",
}  # fmt: skip
LITERALS = {
    "int": ("1", "0", "2", "3", "-1"),
    "big": ("1::bigint", "0::bigint", "1000000000000"),
    "num": ("1.50", "0.00", "-2.25"),
    "text": ("text 'x'", "''", "'y'", "text 'Ä'", "text '10'", "text 'xy'"),
    "bool": ("true", "false"),
    "date": ("date '2024-02-29'", "date '1999-12-31'"),
    "ts": (
        "timestamp '2024-03-01 00:00:00'",
        "timestamp '1970-01-01 00:00:01'",
        "timestamp '2024-02-29 23:59:59.9999995'",
    ),
    "float": ("0.5::float8", "3.0::float8"),
    "arr": ("array[1, 2]", "array[3]", "array[1, null]"),
}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_ANY = ("int", "int", "big", "num", "text", "bool", "date", "ts", "float")


def value(g: Generator, kind: str, scope: Scope, depth: int, *, constant: bool = True) -> Node:
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
        return Node(sort, [g.choose(*LITERALS[kind])], plain)

    def sub(of: str = kind) -> Node:
        return _simple(g, of, scope)

    if shape < 0.85 and g.chance(0.6):
        return _general(g, kind, scope, depth, sub)
    made = g.choose(*_OF[kind])
    return Node(sort, [sub(p[1:]) if p.startswith("@") else p for p in made], plain)


def _simple(g: Generator, kind: str, scope: Scope) -> Node:
    """Return a column, a literal, or one step more."""
    refs = [c.text for c in scope if c.kind == kind]
    plain = LITERALS[kind][0]
    if refs and g.chance(0.75):
        return Node(f"e:{kind}", [g.choose(*refs)], plain)
    if g.chance(0.7):
        return Node(f"e:{kind}", [g.choose(*LITERALS[kind])], plain)
    made = g.choose(*_OF[kind])
    leaves = {k: [c.text for c in scope if c.kind == k] or LITERALS[k] for k in NAMES}
    parts = [
        Node(f"e:{p[1:]}", [g.choose(*leaves[p[1:]])], LITERALS[p[1:]][0])
        if p.startswith("@")
        else p
        for p in made
    ]
    return Node(f"e:{kind}", parts, plain)


def _typed(g: Generator, kind: str, scope: Scope) -> Node:
    """Return what has the type by itself, as an unknown literal has not."""
    return Node(f"e:{kind}", ["cast(", _simple(g, kind, scope), f" as {NAMES[kind]})"])


def _general(g: Generator, kind: str, scope: Scope, depth: int, sub) -> Node:
    """Return what there is for every type: CASE, COALESCE, NULLIF, GREATEST."""
    sort, plain = f"e:{kind}", LITERALS[kind][0]
    a, b = sub(), sub()
    shape = g.choose("coalesce", "nullif", "case", "case", "when", "greatest")
    if shape == "coalesce":
        twin = ["case when ", a, " is not null then ", a, " else ", b, " end"]
        return Node(sort, ["coalesce(", a, ", ", b, ")"], plain, twin)
    if shape == "nullif" and kind != "arr":
        twin = ["case when ", a, " = ", b, " then null else ", a, " end"]
        return Node(sort, ["nullif(", a, ", ", b, ")"], plain, twin)
    if shape == "greatest" and kind != "arr":
        return Node(sort, [g.choose("greatest(", "least("), a, ", ", b, ")"], plain)
    if shape == "when":
        of = g.choose(*_ANY)
        x, y = sub(of), sub(of)
        twin = ["case when ", x, " = ", y, " then ", a, " else ", b, " end"]
        return Node(sort, ["case ", x, " when ", y, " then ", a, " else ", b, " end"], plain, twin)
    test = condition(g, scope, depth)
    last = [" else ", b] if g.chance(0.7) else []
    return Node(sort, ["case when ", test, " then ", a, *last, " end"], plain)


# "@kind" is an argument.
_OF: dict[str, tuple[tuple[str, ...], ...]] = {
    "int": (
        ("(", "@int", " + ", "@int", ")"),
        ("(", "@int", " - 1)"),
        ("(2 * ", "@int", ")"),
        ("(- ", "@int", ")"),
        ("(", "@int", " / 2)"),
        ("(", "@int", " % 3)"),
        ("abs(", "@int", ")"),
        ("length(", "@text", ")"),
        ("strpos(", "@text", ", 'x')"),
        ("cardinality(", "@arr", ")"),
        ("(", "@arr", ")[1]"),
        ("(", "@date", " - ", "@date", ")"),
        ("cast(", "@bool", " as int)"),
        ("cast(", "@num", " as int)"),
        ("cast(extract(year from ", "@date", ") as int)"),
        ("cast(extract(dow from ", "@ts", ") as int)"),
        ("ascii(", "@text", ")"),
        ("array_length(", "@arr", ", 1)"),
        ("sign(", "@int", ")::int"),
        ("mod(", "@int", ", 2)"),
        ("(~ ", "@int", " + 1)"),
        ("(", "@int", " # ", "@int", ")"),
        ("array_position(", "@arr", ", ", "@int", ")"),
        ("array_position(", "@arr", ", ", "@num", ")"),
    ),
    "big": (
        ("(", "@big", " + ", "@int", ")"),
        ("(", "@big", " - ", "@big", ")"),
        ("cast(", "@int", " as bigint)"),
        ("abs(", "@big", ")"),
        ("(", "@big", " % 7)"),
        ("(", "@big", " / 3)"),
    ),
    "num": (
        ("(", "@num", " + ", "@num", ")"),
        ("(", "@num", " - ", "@int", ")"),
        ("(", "@num", " * 2)"),
        ("(- ", "@num", ")"),
        ("abs(", "@num", ")"),
        ("round(", "@num", ", 1)"),
        ("round(", "@num", ")"),
        ("floor(", "@num", ")"),
        ("ceil(", "@num", ")"),
        ("cast(", "@int", " as numeric(12, 2))"),
        ("cast(", "@float", " as numeric(12, 2))"),
    ),
    "text": (
        ("(", "@text", " || ", "@text", ")"),
        ("(", "@text", " || ", "@int", ")"),
        ("upper(", "@text", ")"),
        ("lower(", "@text", ")"),
        ("cast(", "@int", " as text)"),
        ("cast(", "@bool", " as text)"),
        ("cast(", "@date", " as text)"),
        ("cast(", "@ts", " as text)"),
        ("cast(", "@num", " as text)"),
        ("substring(", "@text", " from 2)"),
        ("substring(", "@text", " from ", "@int", " for 2)"),
        ("left(", "@text", ", ", "@int", ")"),
        ("right(", "@text", ", ", "@int", ")"),
        ("replace(", "@text", ", 'x', 'yy')"),
        ("reverse(", "@text", ")"),
        ("concat(", "@text", ", ", "@int", ", ", "@text", ")"),
        ("concat_ws('-', ", "@text", ", ", "@text", ")"),
        ("trim(", "@text", ")"),
        ("ltrim(", "@text", ", 'x')"),
        ("split_part(", "@text", ", 'x', 1)"),
        ("lpad(", "@text", ", 3, '*')"),
        ("rpad(", "@text", ", ", "@int", ")"),
        ("repeat(", "@text", ", 2)"),
        ("initcap(", "@text", ")"),
        ("translate(", "@text", ", 'xy', 'ab')"),
        ("md5(", "@text", ")"),
    ),
    "bool": (
        ("(not ", "@bool", ")"),
        ("(", "@int", " > ", "@int", ")"),
        ("(", "@text", " like '%x%')"),
        ("(", "@bool", " is true)"),
        ("(", "@arr", " @> ", "@arr", ")"),
        ("(", "@arr", " && ", "@arr", ")"),
    ),
    "date": (
        ("(", "@date", " + ", "@int", ")"),
        ("(", "@date", " - 1)"),
        ("cast(", "@ts", " as date)"),
        ("cast(date_trunc('month', ", "@ts", ") as date)"),
        ("make_date(2024, 2, 28)",),
    ),
    "ts": (
        ("date_trunc('hour', ", "@ts", ")"),
        ("date_trunc('quarter', ", "@ts", ")"),
        ("date_trunc('week', ", "@ts", ")"),
        ("cast(", "@date", " as timestamp)"),
        ("date_trunc('year', cast(", "@date", " as timestamp))"),
    ),
    "float": (
        ("(", "@float", " + ", "@float", ")"),
        ("(", "@float", " - ", "@int", ")"),
        ("(", "@float", " * 2)"),
        ("(", "@float", " / 4)"),
        ("abs(", "@float", ")"),
        ("floor(", "@float", ")"),
        ("round(", "@float", ")"),
        ("cast(", "@int", " as double precision)"),
        ("cast(", "@num", " as double precision)"),
    ),
    "arr": (
        ("array[", "@int", ", ", "@int", "]"),
        ("array[", "@int", "]"),
        ("(", "@arr", " || ", "@int", ")"),
        ("(", "@int", " || ", "@arr", ")"),
        ("(", "@arr", " || ", "@arr", ")"),
        ("(", "@arr", " || null)"),
        ("array_append(", "@arr", ", null)"),
    ),
}  # fmt: skip


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
    of = g.choose(*_ANY)

    def sub(kind: str = of) -> Node:
        return _simple(g, kind, scope)

    if depth and g.chance(0.35):
        return _query_condition(g, scope, depth - 1, of, sub)
    a, b, c = sub(), sub(), sub()
    op = g.choose(*COMPARISONS)
    shape = g.choose(*range(16))
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
        parts = [x, f" {g.choose('like', 'not like', 'ilike')} '{pattern}'"]
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


def aggregate(g: Generator, kind: str, scope: Scope) -> list[str | Node] | None:
    """Return a call of an aggregate that gives ``kind``; None: min or max will do."""

    def sub(of: str) -> Node:
        return _simple(g, of, scope)

    any_kind = g.choose(*_ANY)
    choices: list[list[str | Node]] = []
    match kind:
        case "big":
            choices = [
                ["count(*", ")"], ["count(", sub(any_kind), ")"], ["sum(", sub("int"), ")"],
                ["count(distinct ", sub(any_kind), ")"], ["sum(distinct ", sub("int"), ")"],
                ["bit_or(", sub("big"), ")"],
            ]  # fmt: skip
        case "int":
            choices = [
                ["cast(count(", sub(any_kind), ") as int)"],
                ["max(", sub("int"), ")"], ["min(", sub("int"), ")"],
                ["bit_and(", sub("int"), ")"],
            ]  # fmt: skip
        case "num":
            choices = [
                ["sum(", sub("num"), ")"], ["sum(", sub("big"), ")"], ["max(", sub("num"), ")"],
                ["round(avg(", sub("int"), "), 6)"], ["sum(distinct ", sub("num"), ")"],
                ["round(avg(", sub("num"), "), 6)"],
            ]  # fmt: skip
        case "text":
            x, y = _typed(g, "text", scope), sub("text")
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
        case "arr":
            x, y = sub("int"), sub("int")
            choices = [
                ["array_agg(", x, " order by ", x, ")"],
                ["array_agg(", x, " order by ", x, " desc nulls last)"],
                ["array_agg(distinct ", x, " order by ", x, ")"],
                ["array_agg(", x, " order by ", y, ", ", x, ")"],
            ]
    return g.choose(*choices) if choices else None


def whole_order(g: Generator, scope: Scope) -> str:
    """Return a window in which only equal rows are peers."""
    every = [c.text for c in scope]
    g.random.shuffle(every)
    keys = ", ".join(f"{c}{g.choose('', ' desc', ' nulls first')}" for c in every)
    return f"{_partition(g, scope)}order by {keys}"


def _partition(g: Generator, scope: Scope) -> str:
    return g.choose("", f"partition by {g.choose(*(c.text for c in scope))} ")


def window(g: Generator, kind: str, scope: Scope, whole: str) -> Node:
    """Return a call over a window; what depends on the order of rows is over ``whole``.

    That is one for all calls of a SELECT: the order of equal rows in two windows is not known.
    """
    by = _partition(g, scope)
    a = _typed(g, kind, scope)
    key = _typed(g, g.choose(*_ANY), scope)
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
        ["lag(", a, ", 1, ", _typed(g, kind, scope), *total],
    ]  # fmt: skip
    if kind not in {"bool", "arr"}:
        choices += [["max(", a, *framed], ["min(", a, *peers], ["max(", a, *plain]]
    if kind == "big":
        n = _simple(g, "int", scope)
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
    return Node(f"e:{kind}", g.choose(*choices), LITERALS[kind][0])
