"""Random SQL over three small tables: what histories of the engine are fuzzed with.

The whole grammar, every type and PostgreSQL's answers are the net's: tests/net/test_net.py.
``random_query`` gives text that PostgreSQL accepts too, whose answer depends on nothing but
the tables (no ties are left open, nothing overflows), with joins of every kind, correlated
subqueries in every place, grouping sets, windows, set operations and top-k. ``SCHEMA`` are
the tables, ``random_tables`` rows for them with NULLs and duplicates. The same seed gives
the same text.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from reclock.ids import ObjectId
from reclock.sql.names import CatalogItem
from reclock.sql.schema import Column, Schema
from reclock.sql.types import INTEGER, TEXT
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from random import Random

Row = tuple[object, ...]

SCHEMA: Final = {
    "t": (("a", "int"), ("b", "int"), ("s", "text")),
    "u": (("a", "int"), ("c", "int")),
    "v": (("k", "int"), ("d", "int")),
}
KEYS: Final = {"v": frozenset({frozenset({0})})}
"""``v`` has a primary key, so that rules about unique keys have something to do."""

_KINDS = {"int": INTEGER, "text": TEXT}
_TEXTS = ("x", "y", "xy", "yx", "")
_MAX_ROWS = 6


class FuzzCatalog:
    """A catalog with the tables of ``SCHEMA``."""

    def __init__(self) -> None:
        self._items = {
            name: CatalogItem(
                ObjectId(f"u{number}"),
                name,
                "table",
                Schema(tuple(Column(c, _KINDS[k], (name, c) != ("v", "k")) for c, k in columns)),
                EPOCH_MS,
                KEYS.get(name, frozenset()),
            )
            for number, (name, columns) in enumerate(SCHEMA.items(), 1)
        }

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        """Return the table of that name."""
        return self._items.get(name[-1])

    def relation_names(self) -> tuple[str, ...]:
        """Return the names of the tables."""
        return tuple(self._items)


def random_tables(random: Random) -> dict[str, Counter[Row]]:
    """Return rows for every table, with NULLs and duplicates where they are allowed."""
    tables: dict[str, Counter[Row]] = {}
    for name, columns in SCHEMA.items():
        if name in KEYS:
            keys = random.sample(range(5), random.randint(0, 4))
            tables[name] = Counter((k, random_value(random, "int")) for k in keys)
            continue
        count = random.randint(0, _MAX_ROWS)
        rows = (tuple(random_value(random, k) for _, k in columns) for _ in range(count))
        tables[name] = Counter(rows)
    return tables


def random_value(random: Random, kind: str) -> object:
    """Return a small value or NULL."""
    if random.random() < 0.2:
        return None
    return random.randint(0, 3) if kind == "int" else random.choice(_TEXTS)


def random_query(random: Random) -> str:
    """Return the text of a query."""
    return _Generator(random).query(2)


_Columns = list[tuple[str, str]]


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._aliases = 0

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"

    def query(self, depth: int) -> str:
        """Return a whole query: perhaps of a set operation, perhaps limited."""
        if depth and self._chance(0.2):
            kinds = ["int", self._random.choice(("int", "text"))]
            left, right = (self._typed_select(depth - 1, kinds) for _ in range(2))
            operator = self._random.choice(("union", "except", "intersect"))
            return f"({left}) {operator} {self._random.choice(('', 'all '))}({right})"
        text, kinds = self.select(depth, [])
        if self._chance(0.2):
            names = ", ".join(f"q.{i}" for i in (f"c{n}" for n in range(len(kinds))))
            order = ", ".join(
                f"{n}{self._random.choice(('', ' desc', ' nulls first'))}"
                for n in names.split(", ")
            )
            limit = f"limit {self._random.randint(0, 3)} offset {self._random.randint(0, 2)}"
            return f"select * from ({text}) q order by {order} {limit}"
        if self._chance(0.1):
            return f"with w as ({text}) select * from w union all select * from w"
        return text

    def _typed_select(self, depth: int, kinds: list[str], outer: _Columns | None = None) -> str:
        source, columns = self._from(depth, outer or [])
        scope = [*columns, *(outer or [])]
        items = ", ".join(f"{self._value(k, scope, 0)} as c{i}" for i, k in enumerate(kinds))
        return f"select {items} from {source}{self._where(scope, depth)}"

    def select(self, depth: int, outer: _Columns) -> tuple[str, list[str]]:
        """Return a select and the types of its columns, which are named c0, c1, …."""
        source, columns = self._from(depth, outer)
        scope = [*columns, *outer]
        where = self._where(scope, depth)
        shape = self._random.random()
        if shape < 0.3:
            return self._grouped(source, where, columns, outer, depth)
        if shape < 0.4:
            return self._windowed(source, where, columns)
        kinds = ["int", self._random.choice(("int", "text"))]
        items = ", ".join(f"{self._value(k, scope, depth)} as c{i}" for i, k in enumerate(kinds))
        distinct = "distinct " if self._chance(0.15) else ""
        if self._chance(0.1):
            sort = ", ".join(f"c{i}" for i in range(len(kinds)))
            inner = f"select {items} from {source}{where}"
            return f"select distinct on (c0) * from ({inner}) o order by {sort}", kinds
        return f"select {distinct}{items} from {source}{where}", kinds

    def _grouped(
        self, source: str, where: str, columns: _Columns, outer: _Columns, depth: int
    ) -> tuple[str, list[str]]:
        ints = [c for c, k in columns if k == "int"]
        key = self._random.choice(ints)
        other = self._random.choice(ints)
        call = self._aggregate(columns)
        second = self._aggregate(columns)
        if self._chance(0.2):
            return f"select {call} as c0, {second} as c1 from {source}{where}", ["int", "int"]
        if self._chance(0.3):
            how = self._random.choice(
                (f"rollup ({key}, {other})", f"cube ({key}, {other})",
                 f"grouping sets (({key}), ({other}), ())")
            )  # fmt: skip
            if key == other:
                how = f"rollup ({key})"
            return (
                f"select {key} as c0, {call} as c1, grouping({key}) as c2 from {source}{where}"
                f" group by {how}",
                ["int", "int", "int"],
            )
        having = ""
        if self._chance(0.4):
            having = f" having {second} {self._compare()} {self._random.randint(0, 3)}"
        value = key
        if depth and self._chance(0.3):
            value = self._scalar_query([(key, "int"), *outer], depth - 1)
        return (
            f"select {key} as c0, {call} as c1, {value} as c2 from {source}{where}"
            f" group by {key}{having}",
            ["int", "int", "int"],
        )

    def _aggregate(self, columns: _Columns) -> str:
        ints = [c for c, k in columns if k == "int"]
        column = self._random.choice(ints)
        made = self._random.choice(
            ("count(*)", f"count({column})", f"count(distinct {column})", f"sum({column})",
             f"min({column})", f"max({column})", f"sum(distinct {column})")
        )  # fmt: skip
        if self._chance(0.2):
            made += f" filter (where {self._predicate(columns, 0)})"
        return made

    def _windowed(self, source: str, where: str, columns: _Columns) -> tuple[str, list[str]]:
        ints = [c for c, k in columns if k == "int"]
        by, value = self._random.choice(ints), self._random.choice(ints)
        everything = ", ".join(c for c, _ in columns)
        part = f"partition by {by} " if self._chance(0.7) else ""
        call = self._random.choice(
            (f"rank() over ({part}order by {value})",
             f"dense_rank() over ({part}order by {value} desc)",
             f"sum({value}) over ({part}order by {value})",
             f"count(*) over ({part.strip()})",
             f"max({value}) over ({part}order by {everything}"
             " rows between 1 preceding and 1 following)",
             f"lag({value}) over ({part}order by {everything})",
             f"row_number() over ({part}order by {everything})")
        )  # fmt: skip
        inner = f"select {by} as c0, {value} as c1, {call} as c2 from {source}{where}"
        if self._chance(0.4):
            inner = f"select * from ({inner}) w where c2 <= {self._random.randint(0, 2)}"
        return inner, ["int", "int", "int"]

    def _relation(self, depth: int, outer: _Columns) -> tuple[str, _Columns]:
        alias = self._alias()
        if depth and self._chance(0.2):
            text, kinds = self.select(depth - 1, outer)
            return f"({text}) {alias}", [(f"{alias}.c{i}", k) for i, k in enumerate(kinds)]
        name = self._random.choice(list(SCHEMA))
        return f"{name} {alias}", [(f"{alias}.{c}", k) for c, k in SCHEMA[name]]

    def _from(self, depth: int, outer: _Columns) -> tuple[str, _Columns]:
        text, columns = self._relation(depth, outer)
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            if depth and self._chance(0.2):
                alias = self._alias()
                inner, kinds = self.select(depth - 1, [*columns, *outer])
                kind = self._random.choice(("cross join lateral", "left join lateral"))
                on = " on true" if kind.startswith("left") else ""
                text += f" {kind} ({inner}) {alias}{on}"
                columns = [*columns, *((f"{alias}.c{i}", k) for i, k in enumerate(kinds))]
                continue
            other, added = self._relation(depth - 1 if depth else 0, outer)
            kind = self._random.choice(("join", "left join", "right join", "full join"))
            ints = [c for c, k in columns if k == "int"]
            theirs = [c for c, k in added if k == "int"]
            on = f"{self._random.choice(ints)} = {self._random.choice(theirs)}"
            if kind != "full join" and self._chance(0.4):
                on += f" and {self._predicate([*columns, *added], 0)}"
            text += f" {kind} {other} on {on}"
            columns = [*columns, *added]
        return text, columns

    def _where(self, scope: _Columns, depth: int) -> str:
        count = self._random.choice((0, 1, 1, 2))
        parts = [self._predicate(scope, depth) for _ in range(count)]
        return " where " + " and ".join(parts) if parts else ""

    def _compare(self) -> str:
        return self._random.choice(("=", "<>", "<", "<=", ">", ">="))

    def _predicate(self, scope: _Columns, depth: int) -> str:
        value = self._value("int", scope, 0)
        simple = [
            lambda: f"{value} {self._compare()} {self._value('int', scope, depth)}",
            lambda: f"{value} is {self._random.choice(('', 'not '))}null",
            lambda: f"{value} in (1, {self._value('int', scope, 0)}, null)",
            lambda: f"{value} is distinct from {self._value('int', scope, 0)}",
            lambda: f"{self._value('text', scope, 0)} like 'x%'",
            lambda: f"not ({self._predicate(scope, 0)})",
            lambda: f"({self._predicate(scope, 0)} or {self._predicate(scope, 0)})",
            lambda: f"{value} between 1 and 2",
        ]
        if not depth or self._chance(0.4):
            return self._random.choice(simple)()
        inner = depth - 1
        subqueries = [
            lambda: f"exists ({self.select(inner, scope)[0]})",
            lambda: f"not exists ({self.select(inner, scope)[0]})",
            lambda: f"{value} in ({self._typed_select(inner, ['int'], scope)})",
            lambda: f"{value} not in ({self._typed_select(inner, ['int'], scope)})",
            lambda: f"{value} {self._compare()} any ({self._typed_select(inner, ['int'], scope)})",
            lambda: f"{value} {self._compare()} all ({self._typed_select(inner, ['int'], scope)})",
            lambda: (
                f"({value}, {self._value('int', scope, 0)}) in "
                f"({self._typed_select(inner, ['int', 'int'], scope)})"
            ),
            lambda: f"({self._predicate(scope, depth)} or {self._predicate(scope, inner)})",
        ]
        return self._random.choice(subqueries)()

    def _scalar_query(self, scope: _Columns, depth: int) -> str:
        source, columns = self._from(depth, scope)
        where = self._where([*columns, *scope], depth)
        if self._chance(0.3):
            ints = [c for c, k in columns if k == "int"]
            column = self._random.choice(ints)
            return f"(select {column} from {source}{where} order by {column} limit 1)"
        return f"(select {self._aggregate(columns)} from {source}{where})"

    def _value(self, kind: str, scope: _Columns, depth: int) -> str:
        names = [c for c, k in scope if k == kind]
        if kind == "text":
            choices = [f"'{self._random.choice(_TEXTS)}'"]
            if names:
                name = self._random.choice(names)
                choices += [name, name, f"upper({name})", f"{name} || 'x'"]
            return self._random.choice(choices)
        if depth and self._chance(0.25):
            return self._scalar_query(scope, depth - 1)
        if depth and self._chance(0.1):
            test = self._predicate(scope, depth)
            return f"case when {test} then 1 else {self._value('int', scope, 0)} end"
        if not names or self._chance(0.15):
            return str(self._random.randint(0, 3))
        name = self._random.choice(names)
        return self._random.choice(
            (name, name, name, f"({name} + 1)", f"coalesce({name}, 0)", f"abs({name} - 2)",
             f"(- {name})", f"nullif({name}, 1)",
             f"case when {name} > 1 then {self._random.choice(names)} else 0 end")
        )  # fmt: skip
