"""Queries that find a row on which an expression fails.

Definition. A *step* of a plan is what looks at one row at a time: a chain of filters and
projections, the array of a FlatMap above one, or the condition of a join. Its *base* is the node
that it is written over: a relation, a join, a grouping. For an error, ``suspects`` gives per step
the query of a *witness*: the first row of the base, in the order of the columns that are shown,
for which that error is the first of the step. Steps come inputs first.

A *group* is what fails over several rows: an aggregate or a window function over all that have the
same keys. Which group it is, nobody can ask in one query, since the function fails. So it is looked
for by halves: ``Group`` says the queries, over what part of the groups, told apart by the hashes
of their keys.

What can fail below the base leaves its rows out, as a view does, so that the query itself does not
fail; only aggregates may still. Shown are the key of the base, or its first columns, and those that
can fail depend on; a column is called by the relation that it comes from.

Cost: that of the batch query below the step; for a group twice that.

Tests: tests/sql/test_witness.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reclock.sql.plan.build.functions import call
from reclock.sql.plan.coerce import explicit_cast
from reclock.sql.plan.relation import (
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    Negate,
    Project,
    QueryPlan,
    Reduce,
    Threshold,
    TopK,
    Window,
    column,
    keep,
    transform,
    walk,
)
from reclock.sql.plan.scalar import (
    FALSE,
    TRUE,
    Case,
    ColumnRef,
    Fault,
    Literal,
    can_fail,
    columns_of,
    substituted,
)
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.rewrite.lower_joins import lower_joins
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.sql.plan.node import Node
    from reclock.sql.plan.order import WindowCall
    from reclock.sql.plan.reduce import AggregateCall
    from reclock.sql.plan.scalar import Scalar

FIRST: Final = 3
"""How many columns are shown of what has no key."""

COLUMNS: Final = 6
"""How many columns are shown at most."""

NEVER_FAIL: Final = frozenset({
    "count", "min", "max", "bool_and", "bool_or", "every", "array_agg", "string_agg", "row_number",
    "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value",
    "last_value", "nth_value", "any_value",
})  # fmt: skip
"""Functions over groups that give no error."""

GROUPS: Final = 200_000
"""Among more groups than this one is not looked for."""

PARTS: Final = 2_000
"""A step of more parts than this is not looked at."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A query of at most one row, and what its columns are called."""

    plan: QueryPlan
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A grouping, or a window, over rows that do not fail; and its keys with their names."""

    node: Reduce | Window
    keys: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def hashes(self) -> QueryPlan:
        """What has a hash for each group, or one more than ``GROUPS``."""
        made = Distinct(Project(self.node.input, (("hash", self._hash),)))
        return QueryPlan(TopK(made, (), (), GROUPS + 1), 1)

    def among(self, first: str, last: str) -> QueryPlan:
        """Return what fails if one of the groups with these hashes, and those between, does."""
        node = TopK(replace(self.node, input=self._between(first, last)), (), (), 1)
        return QueryPlan(node, node.width)

    def of(self, one: str) -> Suspect:
        """Return how to find the keys of the group with this hash."""
        first = TopK(keep(self._between(one, one), self.keys), (), (), 1)
        return Suspect(QueryPlan(first, first.width), self.names)

    def _between(self, first: str, last: str) -> Node:
        bounds = ((">=", first), ("<=", last))
        return Filter(
            self.node.input,
            tuple(call(sign, (self._hash, Literal(bound, TEXT))) for sign, bound in bounds),
        )

    @property
    def _hash(self) -> Scalar:
        made: Scalar = Literal("", TEXT)
        for key in self.keys:
            value = column(self.node.input, key)
            known = call("||", (Literal("=", TEXT), call("md5", (explicit_cast(value, TEXT),))))
            some = call("coalesce", (known, Literal("-", TEXT)))
            made = call("||", (made, some))
        return call("md5", (made,))


@dataclass(frozen=True, slots=True)
class _Step:
    base: Node
    filters: tuple[Scalar, ...]
    outputs: tuple[Scalar, ...]

    @property
    def failing(self) -> list[Scalar]:
        return [scalar for scalar in (*self.filters, *self.outputs) if can_fail(scalar)]


def suspects(root: Node, error: str) -> Iterator[Suspect | Group]:
    """Yield for each step of a plan that can fail how to find a row, or group, with ``error``.

    It is ``SQLSTATE|message``; the plan is that of one time (``temporal.at_time``).
    """
    for step in _steps(lower_joins(root)):
        if isinstance(step, Group):
            yield step
            continue
        failing = step.failing
        if failing and step.base.width and _parts(failing) <= PARTS:
            yield _suspect(step, error)


def _steps(root: Node) -> Iterator[_Step | Group]:
    nodes = list(walk(root))
    chained = Project | Filter | FlatMap
    ends = {child for n in nodes if not isinstance(n, chained) for child in n.inputs} | {root}
    for node in nodes:
        match node:
            case FlatMap():
                base, filters, here = _chain(node.input)
                yield _Step(base, filters, (substituted(node.array, here),))
            case Join() if node.residual:
                yield _Step(replace(node, residual=()), node.residual, ())
            case Reduce() if node.keys and _can_fail(c for _, c in node.aggregates):
                yield _group(node, node.keys)
            case Window() if node.partition and _can_fail(c for _, c in node.calls):
                yield _group(node, node.partition)
            case Project() | Filter() if node in ends:
                yield _Step(*_chain(node))


def _can_fail(calls: Iterable[AggregateCall | WindowCall]) -> bool:
    return any(c.function.name not in NEVER_FAIL for c in calls)


def _group(node: Reduce | Window, keys: tuple[int, ...]) -> Group:
    base = transform(node.input, _without_errors)
    return Group(replace(node, input=base), keys, tuple(_origin(base, key) for key in keys))


def _chain(node: Node) -> tuple[Node, tuple[Scalar, ...], tuple[Scalar, ...]]:
    """Return the base of a chain, its filters and its outputs, as expressions over the base."""
    chain: list[Project | Filter] = []
    while isinstance(node, Project | Filter):
        chain.append(node)
        node = node.input
    here: tuple[Scalar, ...] = tuple(column(node, i) for i in range(node.width))
    filters: list[Scalar] = []
    for part in reversed(chain):
        if isinstance(part, Filter):
            filters += [substituted(p, here) for p in part.predicates]
        else:
            here = tuple(substituted(s, here) for _, s in part.outputs)
    return node, tuple(filters), here


def _parts(scalars: Iterable[Scalar]) -> int:
    return sum(1 for scalar in scalars for _ in walk_scalar(scalar))


def _suspect(step: _Step, error: str) -> Suspect:
    rows = Filter(transform(step.base, _without_errors), (_fails(step, error),))
    shown = _shown(step.base, sorted({c for s in step.failing for c in columns_of(s)}))
    first = TopK(keep(rows, tuple(shown)), (), (), 1)
    return Suspect(QueryPlan(first, first.width), tuple(_origin(step.base, i) for i in shown))


def _fails(step: _Step, error: str) -> Scalar:
    """Return whether the first error of a step is ``error``."""
    wanted = Literal(error, TEXT)
    branches: list[tuple[Scalar, Scalar]] = []
    for at, scalar in enumerate((*step.filters, *step.outputs)):
        if can_fail(scalar):
            fault = Fault(scalar)
            branches.append((call("=", (fault, wanted)), TRUE))
            branches.append((call("not", (_is_null(fault),)), FALSE))
        if at < len(step.filters):
            branches.append((call("not", (call("is true", (scalar,)),)), FALSE))
    return Case(tuple(branches), FALSE)


def _without_errors(node: Node) -> Node:
    """Return a node that leaves out the rows that it would fail on."""
    match node:
        case Filter():
            return replace(node, predicates=tuple(_tried(node.predicates)))
        case Join():
            return replace(node, residual=tuple(_tried(node.residual)))
        case Project():
            return replace(node, input=_fine(node.input, [scalar for _, scalar in node.outputs]))
        case FlatMap():
            return replace(node, input=_fine(node.input, [node.array]))
    return node


def _tried(predicates: Iterable[Scalar]) -> Iterator[Scalar]:
    for predicate in predicates:
        if can_fail(predicate):
            yield _is_null(Fault(predicate))
        yield predicate


def _fine(node: Node, scalars: Iterable[Scalar]) -> Node:
    tests = tuple(_is_null(Fault(scalar)) for scalar in scalars if can_fail(scalar))
    return Filter(node, tests) if tests else node


def _is_null(fault: Fault) -> Scalar:
    return call("is null", (fault,))


def _shown(base: Node, used: list[int]) -> list[int]:
    """Return the columns that tell a row from others, then those that matter."""
    keys = sorted((sorted(key) for key in base.unique_keys if key), key=lambda key: (len(key), key))
    first = keys[0] if keys else list(range(min(FIRST, base.width)))
    return list(dict.fromkeys([*first, *used]))[:COLUMNS]


def _origin(node: Node, index: int) -> str:  # noqa: PLR0911 - one per kind of node
    """Return what a column is called: by the relation that it comes from, if that is known."""
    name = node.schema[index].name
    match node:
        case Get():
            return f"{node.name}.{name}"
        case Project() if isinstance(scalar := node.outputs[index][1], ColumnRef):
            return _origin(node.input, scalar.index)
        case Filter() | Distinct() | Threshold() | Negate() | TopK():
            return _origin(node.input, index)
        case FlatMap() | Window() if index < node.input.width:
            return _origin(node.input, index)
        case Reduce() if index < len(node.keys):
            return _origin(node.input, node.keys[index])
        case Join():
            left = node.left.width
            side, at = (node.left, index) if index < left else (node.right, index - left)
            return _origin(side, at)
    return name
