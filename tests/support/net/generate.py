"""Random whole queries, over all that the planner takes.

``random_query`` gives a tree whose answer depends on the tables alone: what picks among rows
orders by all columns, aggregates over order have one, floats are multiples of powers of two,
integers stay small. Most are valid; some are not (an ambiguous name, say), and then PostgreSQL
and we must both refuse them. The same seed gives the same query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from net import aggregates, forms, mixed, values
from net.kinds import LITERALS, NAMES, UNORDERED
from net.tables import SCHEMA
from net.tree import Items, Node, maybe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

KINDS = (
    "int", "int", "int", "int", "big", "num", "num", "text", "text", "text", "bool", "date", "ts",
    "float", "arr", "small", "real", "tz", "iv", "json", "bytes", "texts",
)  # fmt: skip
_ROOM = 4
ORDERED = tuple(k for k in KINDS if k not in UNORDERED)


@dataclass(frozen=True)
class Ref:
    """A column that can be named: ``text`` means it; ``name`` is what NATURAL goes by."""

    text: str
    kind: str
    name: str


Scope = list[Ref]


def random_query(random: Random, depth: int = 2, *, wide: bool = False) -> Node:
    """Return a query of at most three columns; ``wide`` has more forms (``Generator.wide``)."""
    return Generator(random, wide=wide).query(depth, [], None)[0]


class Generator:
    """Draws one query.

    ``wide`` draws all that the planner takes: windows over groups, types that meet, literals of no
    type, subqueries in every place, stars, chains of set operations, every function and aggregate.
    """

    def __init__(self, random: Random, *, wide: bool = False) -> None:
        self.random = random
        self.wide = wide
        self._names = 0
        self._common: list[tuple[str, list[str]]] = []
        self._left = 9  # relations that the query may still name
        self._room = _ROOM  # and those that this FROM may, so that joins stay small

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choose(self, *choices):
        return self.random.choice(choices)

    def name(self) -> str:
        self._names += 1
        return f"r{self._names}"

    # Queries

    def kinds(self) -> list[str]:
        return [self.choose(*KINDS) for _ in range(self.choose(1, 2, 2, 3))]

    def query(self, depth: int, outer: Scope, kinds: list[str] | None) -> tuple[Node, list[str]]:
        kinds = kinds or self.kinds()
        depth = depth if self._left > 0 else 0
        shape = self.random.random() if depth else 1.0
        sort = "q:" + ",".join(kinds)
        if shape < 0.12:
            narrower = 0.2 if self.wide else 0.0
            widened = [mixed.narrower(self, k) if self.chance(narrower) else k for k in kinds]
            left, right = (self.query(depth - 1, outer, of)[0] for of in (kinds, widened))
            if self.chance(0.5):
                left, right = right, left
            operator = self.choose("union", "except", "intersect") + self.choose("", " all")
            return Node(sort, ["(", left, f") {operator} (", right, ")"]), kinds
        if shape < 0.2:
            return self._with(depth, outer, kinds, sort), kinds
        if shape < 0.28:
            inner, _ = self.query(depth - 1, outer, kinds)
            return self._limited(inner, kinds, sort), kinds
        if shape < 0.31:
            return self._values(outer, kinds, sort), kinds
        if self.wide and shape < 0.35:
            return forms.chain(self, depth, outer, kinds, sort), kinds
        return self.select(depth, outer, kinds, sort), kinds

    def _with(self, depth: int, outer: Scope, kinds: list[str], sort: str) -> Node:
        name = self.choose(self.name(), self.name(), "t")
        inner, inside = self.query(depth - 1, outer, None)
        columns = ", ".join(f"c{i}" for i in range(len(inside)))
        named = f" ({columns})" if self.chance(0.3) else ""
        self._common.append((name, inside))
        body, _ = self.query(depth - 1, outer, kinds)
        self._common.pop()
        after = self.name()
        return Node(
            sort, [f"with {name}{named} as (", inner, ") select * from (", body, f") {after}"]
        )

    def _limited(self, inner: Node, kinds: list[str], sort: str) -> Node:
        ways = ("", " desc", " nulls first", " desc nulls last")
        columns = [aggregates.order_key(f"c{i}", kind) for i, kind in enumerate(kinds)]
        keys = [f"{column}{self.choose(*ways)}" for column in columns]
        self.random.shuffle(keys)
        limit = maybe(f" limit {self.choose(0, 1, 2, 3)}")
        offset = maybe(f" offset {self.choose(0, 1, 2)}")
        name = self.name()
        return Node(
            sort, ["select * from (", inner, f") {name} order by {', '.join(keys)}", limit, offset]
        )

    def _values(self, outer: Scope, kinds: list[str], sort: str) -> Node:
        rows = [self._row(outer, kinds) for _ in range(self.choose(1, 2, 3))]
        name = self.name()
        columns = ", ".join(f"c{i}" for i in range(len(kinds)))
        return Node(sort, ["select * from (values ", Items(rows), f") {name} ({columns})"])

    def _row(self, scope: Scope, kinds: list[str]) -> Node:
        parts: list[str | Node] = ["("]
        for at, kind in enumerate(kinds):
            parts += [", " if at else "", "cast(", self.value(kind, [], 0)]
            parts.append(f" as {NAMES[kind]})")
        return Node("row", [*parts, ")"])

    # SELECT

    def select(  # noqa: PLR0911  # one per form
        self, depth: int, outer: Scope, kinds: list[str], sort: str
    ) -> Node:
        source, columns = self.from_list(depth, outer)
        scope = [*columns, *outer]
        where = self._where(scope, depth)
        shape = self.random.random()
        rows = Node("rows", ["select * from ", source, where])
        if shape < 0.08 and not {"bytes", *UNORDERED} & {*kinds}:
            return self._summed(source, where, columns, kinds, sort)
        if shape < 0.3:
            if self.wide and self.chance(0.2):
                return forms.windows_of_groups(self, source, where, columns, kinds, sort)
            return self._grouped(depth, source, where, columns, outer, kinds, sort)
        if shape < 0.42:
            return self._windowed(source, where, columns, kinds, sort)
        items = self._items(kinds, scope, depth)
        if self.wide and shape < 0.46:
            return forms.top(self, source, where, columns, items, sort)
        if shape < 0.52:
            made = Node(sort, ["select distinct ", *items, " from ", source, where])
            made.rows = rows
            if shape < 0.49:
                made.twin = self._thirds(items, source, where, columns, "union")
            return made
        if shape < 0.58 and kinds[0] != "json":
            inner = Node(sort, ["select ", *items, " from ", source, where])
            columns = [aggregates.order_key(f"c{i}", kind) for i, kind in enumerate(kinds)]
            keys = ", ".join(f"{column}{self.choose('', ' desc')}" for column in columns)
            text = "select distinct on (c0) * from (", inner, f") {self.name()} order by {keys}"
            return Node(sort, text)
        made = Node(sort, ["select ", *items, " from ", source, where])
        made.rows = rows
        if shape < 0.64:
            made.twin = self._thirds(items, source, where, scope, "union all")
        return made

    def _thirds(  # noqa: PLR0917  # what a SELECT has been made of so far
        self, items: list[str | Node], source: Node, where: Node, scope: Scope, operator: str,
        by: Sequence[str | Node] = (),
    ) -> list[str | Node]:  # fmt: skip
        """Return the rows for which a condition is true, false and unknown, together."""
        test = self.condition(scope, 0)
        thirds: list[str | Node] = []
        for third in ("", " is false", " is null"):
            joined = " and (" if str(where) else " where ("
            part = ["select ", *items, " from ", source, where, joined, test, f"){third}", *by]
            thirds += [f" {operator} (" if thirds else "(", *part, ")"]
        return thirds

    def _summed(
        self, source: Node, where: Node, columns: Scope, kinds: list[str], sort: str
    ) -> Node:
        """Return groups whose aggregates are made of those of thirds of the rows."""
        keys = [(self._key(k, columns), k) for k in kinds[: self.choose(0, 1, 1, 2)]]
        items: list[str | Node] = []
        inner: list[str | Node] = []
        for at, (key, _) in enumerate(keys):
            inner += [key, f" as k{at}, "]
        outer: list[str] = []
        for at, kind in enumerate(kinds):
            comma = ", " if at else ""
            if at < len(keys):
                made, again = keys[at][0], f"k{at}"
                inner += [comma, made, f" as c{at}"]
            else:
                made, again = aggregates.additive(self, kind, columns, f"c{at}")
                inner += [comma, made, f" as c{at}"]
            items += [comma, made, f" as c{at}"]
            outer.append(f"{again} as c{at}")
        listed = Items([k for k, _ in keys])
        by: list[str | Node] = [" group by ", listed] if keys else []
        made = Node(sort, ["select ", *items, " from ", source, where, *by])
        made.rows = Node("rows", ["select * from ", source, where])
        thirds = self._thirds(inner, source, where, columns, "union all", by)
        names = ", ".join(f"k{i}" for i in range(len(keys)))
        again_by = f" group by {names}" if keys else ""
        made.twin = [f"select {', '.join(outer)} from (", *thirds, f") {self.name()}{again_by}"]
        return made

    def _items(self, kinds: list[str], scope: Scope, depth: int) -> list[str | Node]:
        made: list[str | Node] = []
        for at, kind in enumerate(kinds):
            made += [", " if at else "", self.value(kind, scope, depth), f" as c{at}"]
        return made

    def _where(self, scope: Scope, depth: int) -> Node:
        tests = [self.condition(scope, depth) for _ in range(self.choose(0, 0, 1, 1, 2))]
        return maybe(" where ", Items(tests, " and ")) if tests else maybe()

    def _grouped(  # noqa: PLR0917  # what a SELECT has been made of so far
        self, depth: int, source: Node, where: Node, columns: Scope, outer: Scope,
        kinds: list[str], sort: str,
    ) -> Node:  # fmt: skip
        keys: list[tuple[Node, str]] = []
        for _ in range(self.choose(0, 1, 1, 2, 2)):
            kind = self.choose(*ORDERED)
            keys.append((self._key(kind, columns), kind))
        items: list[str | Node] = []
        for at, kind in enumerate(kinds):
            fitting = [k for k, of in keys if of == kind]
            if fitting and self.chance(0.6):
                item: Node = self.choose(*fitting)
            elif keys and kind == "int" and self.chance(0.2):
                item = Node("e:int", ["grouping(", self.choose(*keys)[0], ")"], "0")
            else:
                item = self.aggregate(kind, [*columns, *outer] if self.chance(0.1) else columns)
            items += [", " if at else "", item, f" as c{at}"]
        listed = [k for k, _ in keys]
        having = maybe()
        if self.chance(0.3):
            having = maybe(" having ", self.condition_of_groups(columns, listed))
        by = self._group_by(listed) if listed else maybe()
        made = Node(sort, ["select ", *items, " from ", source, where, by, having])
        if not str(having):
            made.rows = Node("rows", ["select * from ", source, where])
        return made

    def condition_of_groups(self, columns: Scope, keys: list[Node]) -> Node:
        """Return what HAVING asks of a group."""
        shape = self.random.random()
        if shape < 0.5 or not self.wide:
            test = self.aggregate("big", columns)
            op = self.choose("=", "<>", "<", ">=")
            return Node("e:bool", ["(", test, f" {op} 1)"], "true")
        if keys and shape < 0.65:
            key, word = self.choose(*keys), self.choose("is null", "is not null")
            return Node("e:bool", ["(", key, f" {word})"], "true")
        kind = self.choose(*ORDERED)
        op = self.choose("=", "<>", "<", ">=", "is distinct from")
        made, other = self.aggregate(kind, columns), self.value(kind, [], 1)
        return Node("e:bool", ["(", made, f" {op} ", other, ")"], "true")

    def _key(self, kind: str, columns: Scope) -> Node:
        """Return what to group by: no constant.

        A constant's number would be a column's; and where a grouping set lacks it, PostgreSQL has
        NULL in the first output that repeats it and the constant in the others.
        """
        refs = [c.text for c in columns if c.kind == kind]
        if refs and self.chance(0.5):
            return Node("key", [self.choose(*refs)])
        made = self.value(kind, columns, 0, constant=False)
        test = f"case when {self.choose(*columns).text} is null then "
        return Node("key", [test, made, f" else {LITERALS[kind][0]} end"])

    def _group_by(self, keys: list[Node]) -> Node:
        shape = self.random.random()
        if shape < 0.6:
            return Node("by", [" group by ", Items(keys)])
        both = len(keys) > 1
        a, b = keys[0], keys[-1]
        if shape < 0.75:
            rolled = [" group by rollup (", Items(keys), ")"]
            sets = ["((", a, ", ", b, "), (", a, "), ())"] if both else ["((", a, "), ())"]
            return Node("by", rolled, twin=[" group by grouping sets ", *sets])
        if shape < 0.87 and both:
            cubed = [" group by cube (", a, ", ", b, ")"]
            sets = ["((", a, ", ", b, "), (", a, "), (", b, "), ())"]
            return Node("by", cubed, twin=[" group by grouping sets ", *sets])
        if both and self.chance(0.3):
            return Node("by", [" group by ", a, ", rollup (", b, ")"])
        members = Items([Node("set", ["(", k, ")"]) for k in keys] + [Node("set", ["()"])])
        return Node("by", [" group by grouping sets (", members, ")"])

    def aggregate(self, kind: str, scope: Scope) -> Node:
        made = aggregates.aggregate(self, kind, scope)
        sort = f"e:{kind}"
        if made is None:
            inner = self.value(kind, scope, 0)
            made = [self.choose("min(", "max("), inner, ")"]
        if self.chance(0.2) and str(made[-1]) == ")":
            test = self.condition(scope, 0)
            return Node(sort, [*made, " filter (where ", test, ")"])
        return Node(sort, made, LITERALS[kind][0])

    def _windowed(
        self, source: Node, where: Node, columns: Scope, kinds: list[str], sort: str
    ) -> Node:
        items: list[str | Node] = []
        whole = aggregates.whole_order(self, columns)
        for at, kind in enumerate(kinds):
            made = aggregates.window(self, kind, columns, whole) if self.chance(0.6) else None
            items += [", " if at else "", made or self.value(kind, columns, 0), f" as c{at}"]
        inner = Node(sort, ["select ", *items, " from ", source, where])
        inner.rows = Node("rows", ["select * from ", source, where])
        number = [i for i, k in enumerate(kinds) if k in {"big", "int"}]
        if number and self.chance(0.4):
            test = f"c{self.choose(*number)} {self.choose('<=', '=', '<')} {self.choose(1, 2)}"
            return Node(
                sort, ["select * from (", inner, f") {self.name()}", maybe(" where ", test)]
            )
        return inner

    # FROM

    def from_list(self, depth: int, outer: Scope) -> tuple[Node, Scope]:
        items: list[Node] = []
        seen: Scope = []
        room, self._room = self._room, _ROOM
        for _ in range(self.choose(1, 1, 1, 1, 2, 2, 3) if self._left > 0 else 1):
            if items and self._room <= 0:
                break
            item, columns = self._item(depth, outer, seen)
            items.append(item)
            seen = [*seen, *columns]
        self._room = room
        return Node("from", [Items(items)], "t"), seen

    def _item(self, depth: int, outer: Scope, left: Scope) -> tuple[Node, Scope]:
        """Return an item of the list: ``left`` is what LATERAL sees of the list so far."""
        node, columns = self._relation(depth, outer, left)
        for _ in range(self.choose(0, 0, 0, 1, 1, 2) if self._left > 0 else 0):
            if self._room <= 0:
                break
            node, columns = self._join(node, columns, depth, outer, left)
        return node, columns

    def _join(
        self, node: Node, columns: Scope, depth: int, outer: Scope, left: Scope
    ) -> tuple[Node, Scope]:
        kind = self.choose("", "inner ", "left ", "left ", "right ", "full ", "cross ")
        seen = [*left, *columns] if kind in {"", "inner ", "left ", "cross "} else left
        if depth and self.chance(0.1):
            other, added = self._item(depth - 1, outer, seen)
            if isinstance(other.parts[0], Node):  # a join
                other = Node("item", ["(", other, ")"])
        else:
            other, added = self._relation(max(depth - 1, 0), outer, seen)
        both = [*columns, *added]
        if kind == "cross ":
            return Node("item", [node, " cross join ", other]), both
        shared = [
            c.name
            for c in columns
            if sum(o.name == c.name for o in columns) == 1
            and [o.kind for o in added if o.name == c.name] == [c.kind]
        ]
        if shared and self.chance(0.25):
            names = shared if self.chance(0.5) else shared[:1]
            merged = [Ref(n, c.kind, n) for n in names for c in columns if c.name == n]
            rest = [Ref(c.text, c.kind, f"{c.text}?") if c.name in names else c for c in both]
            using = ["using (", ", ".join(names), ")"]
            everything = {c.name for c in columns} & {c.name for c in added} == set(shared)
            if names == shared and everything and self.chance(0.6):
                said = [node, f" natural {kind}join ", other]
                return Node("item", said, twin=[node, f" {kind}join ", other, " ", *using]), [
                    *merged,
                    *rest,
                ]
            return Node("item", [node, f" {kind}join ", other, " ", *using]), [*merged, *rest]
        tests: list[Node] = []
        if kind == "full " or self.chance(0.8):
            tests.append(self._equal(columns, added))
        if not tests or self.chance(0.3):
            tests.append(self.condition([*both, *outer], 0))
        on = Items(tests, " and ")
        said = [node, f" {kind}join ", other, " on ", on]
        twin = None
        if kind == "right ":
            sides = [["(", n, ")"] if isinstance(n.parts[0], Node) else [n] for n in (other, node)]
            twin = [*sides[0], " left join ", *sides[1], " on ", on]
            if (
                "lateral" in str(node)
                or "lateral" in str(other)
                or " join " not in str(other) + str(node)
            ):
                twin = None
        return Node("item", said, twin=twin), both

    def _equal(self, left: Scope, right: Scope) -> Node:
        pairs = [
            (a, b) for a in left for b in right if a.kind == b.kind and a.kind not in UNORDERED
        ]
        if not pairs:
            return Node("e:bool", ["true"])
        a, b = self.choose(*pairs)
        return Node("e:bool", [f"{a.text} = {b.text}"], "true")

    def _relation(self, depth: int, outer: Scope, left: Scope) -> tuple[Node, Scope]:
        alias = self.name()
        self._left -= 1
        self._room -= 1
        shape = self.random.random()
        if depth and shape < 0.2 and self._left > 0:
            lateral = self.chance(0.5)
            scope = [*left, *outer] if lateral else outer
            inner, kinds = self.query(depth - 1, scope, None)
            word = "lateral " if lateral else ""
            columns = [Ref(f"{alias}.c{i}", k, f"c{i}") for i, k in enumerate(kinds)]
            return Node("item", [f"{word}(", inner, f") {alias}"]), columns
        if self.wide and depth and shape < 0.24 and self._room > 0:
            return forms.starred(self, depth - 1, outer, [])
        if shape < 0.3:
            return self._function(alias, [*left, *outer])
        if self._common and shape < 0.5:
            name, kinds = self.choose(*self._common)
            last = [k for n, k in self._common if n == name][-1]
            columns = [Ref(f"{alias}.c{i}", k, f"c{i}") for i, k in enumerate(last)]
            return Node("item", [f"{name} {alias}"]), columns
        hidden = {n for n, _ in self._common}
        table = self.choose(*[n for n in SCHEMA if n not in hidden], "u")
        columns = [Ref(f"{alias}.{c}", k, c) for c, k in SCHEMA[table]]
        return Node("item", [f"{table} {alias}"]), columns

    def _function(self, alias: str, scope: Scope) -> tuple[Node, Scope]:
        counted = self.chance(0.3)
        ordinality = " with ordinality" if counted else ""
        columns = [Ref(f"{alias}.c0", "int", "c0")]
        if counted:
            columns.append(Ref(f"{alias}.n", "big", "n"))
        named = f"{alias} (c0{', n' if counted else ''})"
        if self.chance(0.15):
            columns[0] = Ref(f"{alias}.c0", "ts", "c0")
            first, last = "timestamp '2024-02-28'", "timestamp '2024-03-01 12:00'"
            step = f"interval '{self.choose('1 day', '36 hours', '-1 day')}'"
            series = f"generate_series({first}, {last}, {step}){ordinality} as {named}"
            return Node("item", [series]), columns
        if self.chance(0.5):
            kind, of = self.choose(("arr", "int"), ("arr", "int"), ("texts", "text"))
            columns[0] = Ref(f"{alias}.c0", of, "c0")
            array = self.value(kind, scope, 0)
            return Node("item", ["unnest(", array, f"){ordinality} as {named}"]), columns
        first, last = self.choose("0", "1", "-1"), self.value("int", scope, 0)
        step = maybe(self.choose(", 1", ", 2", ", -1"))
        parts = [
            f"generate_series({first}, greatest(-9, least(",
            last,
            ", 9))",
            step,
            f"){ordinality} as {named}",
        ]
        return Node("item", parts), columns

    # Values and conditions

    def value(self, kind: str, scope: Scope, depth: int, *, constant: bool = True) -> Node:
        return values.value(self, kind, scope, depth, constant=constant)

    def condition(self, scope: Scope, depth: int) -> Node:
        return values.condition(self, scope, depth)

    def mixed(self, kind: str, scope: Scope) -> Node:
        return mixed.value(self, kind, scope)

    def mixed_condition(self, kind: str, scope: Scope) -> Node:
        return mixed.condition(self, kind, scope)

    def nests(self) -> bool:
        """Return whether an argument is a query, which it seldom is: in any place of a query."""
        return self.wide and self._left > 4 and self.chance(0.02)
