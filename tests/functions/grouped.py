"""Aggregates and window functions over edge values: calls, rows, and both answers.

The rows of a call are groups of a table ``x`` (``id``, ``g``, ``c0``, ``c1``): every edge value
alone, all of them, the same one twice, nothing but NULL, and some at random. PostgreSQL is asked
for all groups, and for each alone if one of them fails. reclock is asked as views do, made before
and after rows that come and go, and by one Spark job; a group that fails is an error of its view.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count, product
from typing import TYPE_CHECKING, Any, Final

import psycopg

from graphs.collections import arranged
from graphs.memory_graph import MemoryGraph, hashable
from reclock.arrangement.store import LocalStore
from reclock.dataflow.types import arrow_types
from reclock.dataflow.values import from_python
from reclock.errors import Error
from reclock.ids import ObjectId
from reclock.server.codec import text
from reclock.spark.peek import peek
from reclock.sql import types as t
from reclock.sql.names import CatalogItem
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.plan.functions.aggregate import AGGREGATES, WINDOWS
from reclock.sql.plan.functions.overload import AnyOf
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite, rewrite_query
from reclock.sql.schema import Column, Schema
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

from .cases import COMPARED, NUMERICS, Case
from .edges import EDGES, of
from .net import Difference, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from random import Random

    from reclock.dataflow.evaluate import Evaluator
    from reclock.spark.session import Spark
    from reclock.sql.plan.functions.aggregate import Aggregate
    from reclock.sql.plan.relation import QueryPlan

    from .edges import Literal

Row = tuple["Literal", ...]
Answers = dict[int, "str | None"]
"""Answers by the key of their row: a group, or a row of a window."""

FAILED: Final = "!"
_FRAMES: Final = (
    "partition by g order by id",
    "partition by g order by id rows between 1 preceding and 1 following",
    "partition by g order by id rows between 2 preceding and 1 preceding",
    "partition by g order by id desc rows between current row and unbounded following",
    "partition by g",
)
_NUMBERS: Final = count(1_000)
"""Of tables: plans are known by them."""

_NAMED: Final = {"any_row"}
"""Rows of the table that have no name in SQL."""


@dataclass(frozen=True)
class Call:
    """An expression over the columns of ``x``: one value for each ``g``, or for each ``id``."""

    expression: str
    kinds: tuple[t.Type, ...]
    key: str

    @property
    def case(self) -> Case:
        return Case(self.expression, self.kinds)

    def query(self, where: str = "") -> str:
        """Return the query of the answers, by key."""
        by = " group by g" if self.key == "g" else ""
        return f"select {self.key} as k, {self.expression} as w from x{where}{by}"


def calls() -> Iterator[Call]:
    """Return calls of every row of the table of aggregates, and of that of window functions."""
    for aggregate in AGGREGATES:
        if aggregate.name in _NAMED:
            continue
        for kinds in _kinds(aggregate):
            for expression in _aggregates(aggregate.name, len(kinds)):
                yield Call(expression, kinds, "g")
            for expression in _plain(aggregate.name, len(kinds)):
                yield from (Call(f"{expression} over ({f})", kinds, "id") for f in _FRAMES)
    for function in WINDOWS:
        for kind in COMPARED:
            yield from (Call(e, (kind,), "id") for e in _windows(function))


def _kinds(aggregate: Aggregate) -> Iterator[tuple[t.Type, ...]]:
    ordered = aggregate.name.startswith("percentile")
    choices: list[tuple[t.Type, ...]] = []
    for parameter in aggregate.parameters[1 if ordered else 0 :]:
        if not isinstance(parameter, AnyOf):
            choices.append((parameter,))
        elif parameter.name == "numeric":
            choices.append(NUMERICS)
        else:
            choices.append(tuple(kind for kind in EDGES if parameter.accepts(kind)))
    yield from product(*choices)


def _plain(name: str, count: int) -> list[str]:
    """Return calls that may have a window."""
    if name.startswith("percentile") or name == "mode":
        return []
    return [f"{name}({', '.join(f'c{i}' for i in range(count)) or '*'})"]


def _aggregates(name: str, count: int) -> list[str]:
    if name.startswith("percentile"):
        return [f"{name}({at}) within group (order by c0)" for at in (0, 0.25, 0.5, 0.9, 1)]
    if name == "mode":
        return ["mode() within group (order by c0)"]
    inside = ", ".join(f"c{i}" for i in range(count)) or "*"
    order = " order by id" if name in {"array_agg", "string_agg"} else ""
    made = [f"{name}({inside}{order})", f"{name}({inside}{order}) filter (where id % 2 = 0)"]
    if count == 1:
        order = " order by c0" if name == "array_agg" else ""
        made.append(f"{name}(distinct c0{order})")
    if order:
        made.append(f"{name}({inside} order by c0 desc, id)")
    return made


def _windows(function: Aggregate) -> list[str]:
    name, count = function.name, len(function.parameters)
    peers = ("partition by g order by c0", "partition by g order by c0 desc nulls last")
    offsets = (0, 1, 2, -1, "null::int", 2147483647)
    if count == 0:
        return [f"{name}() over ({w})" for w in ((_FRAMES[0],) if name == "row_number" else peers)]
    if name == "ntile":
        return [f"ntile({n}) over ({_FRAMES[0]})" for n in (1, 2, 3, 100, 0, "null::int")]
    if name in {"lag", "lead"}:
        inside = {1: ["c0"], 2: [f"c0, {n}" for n in offsets], 3: ["c0, 2, c0", "c0, -1, null"]}
        return [f"{name}({i}) over ({_FRAMES[0]})" for i in inside[count]]
    inside = ["c0"] if count == 1 else ["c0, 1", "c0, 2", "c0, 0", "c0, null"]
    return [f"{name}({i}) over ({f})" for i in inside for f in _FRAMES[:4]]


def groups(random: Random, kinds: Sequence[t.Type]) -> list[list[Row]]:
    """Return the rows of each group."""
    values = [of(kind) for kind in kinds]
    some = list(product(*values)) if len(kinds) < 2 else []
    some = some or [tuple(map(random.choice, values)) for _ in range(20)]
    nothing: Row = (None,) * len(kinds)
    made = [[row] for row in some] + [[row, row] for row in random.sample(some, min(3, len(some)))]
    made += [list(some), [nothing, nothing], [nothing, *some[:2]]]
    made += [[random.choice(some) for _ in range(random.choice((2, 2, 3, 5)))] for _ in range(25)]
    return made


class Table:
    """The table ``x`` for columns of certain types, as both have it."""

    def __init__(self, kinds: Sequence[t.Type], made: Sequence[Sequence[Row]]) -> None:
        self.kinds = tuple(kinds)
        numbered = [(g, row) for g, rows in enumerate(made) for row in rows]
        self.literals = [(at, g, *row) for at, (g, row) in enumerate(numbered)]
        self.groups: dict[int, list[int]] = {g: [] for g in range(len(made))}
        for at, (g, _) in enumerate(numbered):
            self.groups[g].append(at)
        types = (t.INTEGER, t.INTEGER, *self.kinds)
        names = ("id", "g", *(f"c{i}" for i in range(len(kinds))))
        schema = Schema(tuple(Column(n, k) for n, k in zip(names, types, strict=True)))
        self.item = CatalogItem(
            ObjectId(f"u{next(_NUMBERS)}"), "x", "table", schema, EPOCH_MS, frozenset()
        )
        columns = [
            hashable(from_python([row[i] for row in self.literals], kind), kind)
            for i, kind in enumerate(types)
        ]
        self.rows: list[tuple[Any, ...]] = list(zip(*columns, strict=True))

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        return self.item if name[-1] == "x" else None

    def relation_names(self) -> tuple[str, ...]:
        return ("x",)

    def load(self, connection: Any) -> None:
        """Make it PostgreSQL's."""
        names = "".join(f", c{i} {kind}" for i, kind in enumerate(self.kinds))
        connection.execute("drop table if exists x")
        connection.execute(f"create temp table x (id int, g int{names})")
        rows = []
        for at, group, *values in self.literals:
            cells = (str(at), str(group), *map(quoted, values, self.kinds))
            rows.append(f"({', '.join(cells)})")
        connection.execute(f"insert into x values {', '.join(rows)}")

    def keys(self, call: Call, group: int) -> list[int]:
        return [group] if call.key == "g" else self.groups[group]


def wanted(connection: Any, table: Table, call: Call) -> Answers:
    """Return PostgreSQL's answers."""
    shown = "select k, case when w is null then null else format('=%s', w) end from ({}) q"
    try:
        return dict(connection.execute(shown.format(call.query()).encode()).fetchall())
    except psycopg.Error:
        made: Answers = {}
        for group in table.groups:
            asked = shown.format(call.query(f" where g = {group}"))
            try:
                made |= dict(connection.execute(asked.encode()).fetchall())
            except psycopg.Error as error:
                made |= dict.fromkeys(table.keys(call, group), f"{FAILED}{error.sqlstate}")
        return made


def planned(table: Table, call: Call, where: str = "") -> QueryPlan | str:
    try:
        return plan_query(parse_query(call.query(where)), table, maintained=True)
    except Error as error:
        return FAILED + error.code


def shown(value: object, kind: t.Type) -> str | None:
    """Return a value of Python as the wire has it."""
    made = from_python([list(value) if isinstance(value, tuple) else value], kind)[0].as_py()
    return None if made is None else "=" + text.write(made, kind)


def kept(
    table: Table, plans: Sequence[QueryPlan], evaluator: Evaluator, *, early: bool
) -> list[Answers]:
    """Return what views of one graph have after rows came and went."""
    ids = [ObjectId(f"u{100 + i}") for i in range(len(plans))]
    nodes = [rewrite(plan.relation, RewriteContext()) for plan in plans]
    graph = MemoryGraph(dict(zip(ids, nodes, strict=True)), evaluator, tables={"x": table.item})
    final = Counter(table.rows)
    if early:
        count = len(table.groups)
        others = [(10_000 + at, (g * 7 + 1) % count, *row) for at, g, *row in table.rows[::2]]
        first = Counter([*table.rows[::3], *others])
        graph.hydrate({"x": first}, 1)
        changes = [(row, 2, final[row] - first[row]) for row in {*final, *first}]
        graph.tick({"x": [c for c in changes if c[2]]}, range(2, 3))
    else:
        graph.hydrate({"x": final}, 2)
    made = []
    for name, node in zip(ids, nodes, strict=True):
        codes = sorted(str(row[0]) for row, n in graph.errors_at(name, 2).items() if n)
        kind = node.schema[1].type
        answers: Answers = {row[0]: shown(row[1], kind) for row in graph.rows_at(name, 2)}
        failed = FAILED + codes[0] if codes else "missing"
        made.append(_Failing(answers, failed))
    return made


class _Failing(dict[int, "str | None"]):
    """Answers; those that are not there have failed."""

    def __init__(self, answers: Answers, failed: str) -> None:
        super().__init__(answers)
        self._failed = failed

    def __missing__(self, key: int) -> str:
        return self._failed


def asked(spark: Spark, table: Table, plan: QueryPlan, place: Path) -> Answers | str:
    """Return what one Spark job has, or its error."""
    made = rewrite_query(plan, RewriteContext(outer_joins=True))
    schema = table.item.schema
    rows = Counter(table.rows)
    leaves = {table.item.id: [arranged(arrow_types(schema), (0,), [(rows, 1)], LocalStore(place))]}
    kinds = [c.type for c in made.root.schema.columns[: made.visible]]
    try:
        found = peek(spark, made, leaves, Timestamp(1))
    except Error as error:
        return FAILED + error.code
    keys, values = map(hashable, found.columns, kinds)
    return {key: shown(value, kinds[1]) for key, value in zip(keys, values, strict=True)}


@dataclass(frozen=True)
class Asking:
    """All who are asked; Spark's one-off answers only if ``spark`` is given."""

    connection: Any
    evaluator: Evaluator
    place: Path
    spark: Spark | None = None

    def compare(self, table: Table, chosen: Sequence[Call]) -> list[Difference]:
        """Return where calls over one table differ from PostgreSQL."""
        table.load(self.connection)
        plans = {call: planned(table, call) for call in chosen}
        sound = {call: plan for call, plan in plans.items() if not isinstance(plan, str)}
        theirs = {call: wanted(self.connection, table, call) for call in chosen}
        found = [
            Difference(call.case, (), answer, plan, "refused", None)
            for call, plan in plans.items()
            if isinstance(plan, str)
            for answer in list(theirs[call].values())[:1]
            if answer != plan
        ]
        for early in (True, False):
            views = kept(table, list(sound.values()), self.evaluator, early=early)
            for (call, plan), ours in zip(sound.items(), views, strict=True):
                of = _Of(table, call, plan, "early" if early else "late")
                found += of.differing(theirs[call], ours)
        if self.spark is not None:
            for call, plan in sound.items():
                found += self._asked(_Of(table, call, plan, "asked"), theirs[call])
        return found

    def _asked(self, of: _Of, theirs: Answers) -> list[Difference]:
        """Compare the groups that do not fail: one that does fails the query."""
        failing = {key for key, answer in theirs.items() if (answer or "").startswith(FAILED)}
        table, call = of.table, of.call
        groups = [g for g in table.groups if not failing & {*table.keys(call, g)}]
        among = ", ".join(map(str, groups)) or "null"
        plan = planned(table, call, f" where g in ({among})")
        assert self.spark is not None
        assert not isinstance(plan, str)
        ours = asked(self.spark, table, plan, self.place)
        if isinstance(ours, str):
            kind = of.plan.relation.schema[1].type
            return [Difference(call.case, (), "answers", ours, of.how, kind)]
        left = {key: answer for key, answer in theirs.items() if key not in failing}
        return of.differing(left, _Failing(ours, "missing"))


@dataclass(frozen=True)
class _Of:
    """What answers are of."""

    table: Table
    call: Call
    plan: QueryPlan
    how: str

    def differing(self, theirs: Answers, ours: Answers) -> list[Difference]:
        kind = self.plan.relation.schema[1].type
        group = {row[0]: row[1] for row in self.table.literals}
        made = []
        for key, answer in theirs.items():
            if ours[key] != answer:
                rows = self.table.groups[key if self.call.key == "g" else group[key]]
                given = tuple("|".join(map(str, self.table.literals[at][2:])) for at in rows)
                made.append(Difference(self.call.case, given, answer, ours[key], self.how, kind))
        return made
