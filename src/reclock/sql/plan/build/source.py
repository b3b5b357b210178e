"""FROM: relations, subqueries, table functions and joins, as rows with a scope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

from reclock.errors import AmbiguousName, NotSupported, UndefinedName, WrongType
from reclock.sql.names import Scope, ScopeColumn, columns_hint, near_hint, resolve_relation
from reclock.sql.plan.build.block import ONE_EMPTY_ROW, Block, blind, offering
from reclock.sql.plan.build.conjunct import conjuncts, reads_subquery
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.build.tables import table_function
from reclock.sql.plan.coerce import common_type, convert
from reclock.sql.plan.condition_order import in_order
from reclock.sql.plan.decorrelate import apply, reads_outer, redepth
from reclock.sql.plan.relation import (
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
    Project,
    column,
    keep,
)
from reclock.sql.plan.scalar import Coalesce, ColumnRef, Literal, OuterRef, Scalar
from reclock.sql.plan.scalar import transform as transform_scalar
from reclock.sql.syntax import query as q
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import Planner
    from reclock.sql.plan.node import Node
    from reclock.sql.syntax import expression as s
    from reclock.sql.types import Type

Rows = tuple["Node", Scope]

_KINDS = {"inner": JoinKind.INNER, "cross": JoinKind.INNER, "left": JoinKind.LEFT,
          "right": JoinKind.LEFT, "full": JoinKind.FULL}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _From:
    """Where an item of FROM stands.

    ``around`` is what it may read: first the rows of FROM to its left, innermost first, whose
    ``level`` is this object's, then the queries around the whole FROM. The plan of an item
    reads the row of ``around`` at depth 1.
    """

    planner: Planner
    around: Block | None
    level: object

    def right_of(self, left: Rows) -> _From:
        """Return the place of an item that has ``left`` to its left."""
        seen = Block(left[0], left[1], self.around, level=self.level)
        return replace(self, around=seen)

    @property
    def blind(self) -> Block | None:
        """What is seen without LATERAL: the queries around, nothing of this FROM."""
        return blind(self.around, self.level)

    @property
    def depth(self) -> int:
        return 0 if self.around is None else self.around.depth + 1


def plan_from(planner: Planner, item: q.FromItem, block: Block) -> Rows:
    """Return the rows of ``item``; names it uses are those of the queries around ``block``."""
    return _item(_From(planner, offering(block.outer, block.common), object()), item)


def _item(at: _From, item: q.FromItem) -> Rows:
    match item:
        case q.TableName():
            return _table(at, item)
        case q.DerivedTable():
            if item.source is not None:
                _check_source(at.planner, item.source)
            outer = at.around if item.lateral else at.blind
            node = at.planner.query(at.planner, item.query, outer).relation
            return node, _scope(node, item.alias, None, item.alias)
        case q.TableFunction():
            return _function(at, item)
        case q.JoinText():
            return _join(at, item)


def _check_source(planner: Planner, given: s.Expression) -> None:
    """Refuse the name of something that is no source."""
    name = ExpressionBuilder(planner, Block())(given)
    if not isinstance(name, Literal) or name.value is None:
        return  # NULL is the name of nothing
    text = str(name.value)
    found = planner.catalog.resolve((text,))
    if found is None:
        hint = near_hint(Name((text,)), planner.catalog.relation_names())
        message = f'source "{text}" does not exist'
        raise UndefinedName(message, code="42P01", hint=hint)
    if found.kind != "source":
        message = f'"{text}" is a {found.kind}, not a source'
        raise WrongType(message, code="42809", hint="it has no positions to translate")


def _scope(node: Node, alias: q.Alias | None, default: str | None, named: q.Alias | None) -> Scope:
    names = list(node.schema.names)
    given = alias.columns if alias is not None else ()
    if len(given) > len(names):
        table = alias.name if alias else default
        message = f'table "{table}" has {len(names)} columns but {len(given)} were specified'
        raise AmbiguousName(message, code="42P10")
    names[: len(given)] = given
    table = alias.name if named is not None and alias is not None else default
    columns = zip(names, node.schema, strict=True)
    return Scope(
        tuple(ScopeColumn(table, n, i, c.type, c.nullable) for i, (n, c) in enumerate(columns))
    )


def _table(at: _From, item: q.TableName) -> Rows:
    parts = item.name.parts
    shared = at.around.find_common(parts[0]) if at.around and len(parts) == 1 else None
    node: Node
    if shared is not None:
        node = redepth(shared.plan, at.depth - shared.depth)
    else:
        found = resolve_relation(at.planner.catalog, item.name)
        if found.plan is not None:
            node = found.plan
        else:
            node = Get(found.id, found.name, found.schema, found.timeline, found.unique_keys)
    return node, _scope(node, item.alias, parts[-1], item.alias)


def _function(at: _From, item: q.TableFunction) -> Rows:
    """Plan a table function; its arguments see what LATERAL sees."""
    inside = Block(outer=at.around)
    build = ExpressionBuilder(at.planner, inside)
    array = table_function(item, tuple(build(a) for a in item.arguments))
    name = item.name if item.alias is None else item.alias.name
    made: Node = FlatMap(inside.node, array, name, item.ordinality)
    if inside.node is not ONE_EMPTY_ROW:  # of subqueries in the arguments
        made = keep(made, range(inside.node.width, made.width))
    return made, _scope(made, item.alias, name, item.alias)


def _join(at: _From, item: q.JoinText) -> Rows:
    left, left_scope = _item(at, item.left)
    inner, right_scope = _item(at.right_of((left, left_scope)), item.right)
    clash = (left_scope.tables & right_scope.tables) - {None}
    if clash:
        message = f'table name "{min(clash)}" specified more than once'
        raise AmbiguousName(message, code="42712", hint="give one of them an alias")
    names = _shared_names(item, left_scope, right_scope)
    if reads_outer(inner) or (_unnests(inner) and item.kind in {"inner", "cross"}):
        return _lateral(at, item, names, (left, left_scope), (inner, right_scope))
    sides = (left, left_scope), (redepth(inner, -1), right_scope)
    if item.kind != "right":
        return _joined(at, item, names, *sides)
    mirrored, scope = _joined(at, item, names, sides[1], sides[0])
    if names is not None:
        return mirrored, scope
    width, other = sides[1][0].width, left.width
    order = [*range(width, width + other), *range(width)]
    place = {old: new for new, old in enumerate(order)}
    moved = sorted((replace(c, index=place[c.index]) for c in scope.columns), key=lambda c: c.index)
    return keep(mirrored, tuple(order)), Scope(tuple(moved))


def _joined(
    at: _From, item: q.JoinText, names: tuple[str, ...] | None, left: Rows, right: Rows
) -> Rows:
    kind = _KINDS[item.kind]
    scope = left[1] + right[1].shifted(left[0].width)
    if names is not None:
        pairs = _pairs(item, left, right, names)
        node = Join(kind, left[0], right[0], (), _equal(pairs, left[0].width))
        return _merged(item, node, pairs, left, right)
    predicates: tuple[Scalar, ...] = ()
    if item.on is not None:
        if reads_subquery(item.on):
            both = Join(JoinKind.INNER, left[0], right[0])
            return _on_subquery(at, item, item.on, both, scope)
        predicates = _conditions(at, item.on, Join(JoinKind.INNER, left[0], right[0]), scope)
    node = Join(kind, left[0], right[0], (), predicates)
    return node, _renulled(scope, node)


def _conditions(at: _From, on: s.Expression, both: Node, scope: Scope) -> tuple[Scalar, ...]:
    build = ExpressionBuilder(at.planner, Block(both, scope, at.blind))
    return in_order(build.condition(c, "JOIN/ON") for c in conjuncts(on))


def _on_subquery(at: _From, item: q.JoinText, on: s.Expression, both: Node, scope: Scope) -> Rows:
    if item.kind not in {"inner", "cross"}:
        message = "a subquery in the condition of an outer join is not supported"
        hint = "compute it in a derived table of that side, and join on its column"
        raise NotSupported(message, hint=hint)
    inside = Block(both, scope, at.blind)
    condition = ExpressionBuilder(at.planner, inside).condition(on, "JOIN/ON")
    return keep(Filter(inside.node, (condition,)), range(both.width)), scope


def _renulled(scope: Scope, node: Node) -> Scope:
    """Return ``scope`` with the nullability that the columns have in ``node``."""
    return Scope(
        tuple(
            ScopeColumn(
                c.table, c.name, c.index, c.type, node.schema[c.index].nullable, c.qualified_only
            )
            for c in scope.columns
        )
    )


def _shared_names(item: q.JoinText, left: Scope, right: Scope) -> tuple[str, ...] | None:
    if item.natural:
        ours = [c.name for c in left.star(None)]
        theirs = {c.name for c in right.star(None)}
        return tuple(dict.fromkeys(n for n in ours if n in theirs))
    return item.using or None


_Pair = tuple[ScopeColumn, ScopeColumn, "Type"]


def _pairs(item: q.JoinText, left: Rows, right: Rows, names: tuple[str, ...]) -> list[_Pair]:
    """Return for each shared name the two columns, as the sides are planned, and their type."""
    says = ("right", "left") if item.kind == "right" else ("left", "right")
    made = []
    for name in names:
        a, b = _only(left[1], name, says[0]), _only(right[1], name, says[1])
        made.append((a, b, common_type((a.type, b.type), "JOIN/USING")))
    return made


def _equal(pairs: list[_Pair], width: int) -> tuple[Scalar, ...]:
    """Return the conditions that the pairs are equal; the right ones begin at ``width``."""
    made = []
    for a, b, _ in pairs:
        x: Scalar = ColumnRef(a.index, a.type, a.nullable, a.name)
        y: Scalar = ColumnRef(b.index + width, b.type, b.nullable, b.name)
        made.append(call("=", (x, y)))
    return tuple(made)


def _merged(item: q.JoinText, node: Node, pairs: list[_Pair], left: Rows, right: Rows) -> Rows:
    """Return the join with each shared column once, before all others."""
    outputs: list[tuple[str, Scalar]] = []
    for a, b, wanted in pairs:
        first = convert(column(node, a.index), wanted)
        second = convert(column(node, b.index + left[0].width), wanted)
        outputs.append((a.name, Coalesce((first, second)) if item.kind == "full" else first))
    outputs += [(c.name, column(node, i)) for i, c in enumerate(node.schema)]
    made = Project(node, tuple(outputs))
    names = [a.name for a, _, _ in pairs]
    merged_columns = tuple(
        ScopeColumn(None, n, i, made.schema[i].type, made.schema[i].nullable)
        for i, n in enumerate(names)
    )
    sides = (left[1], right[1].shifted(left[0].width))
    ordered = reversed(sides) if item.kind == "right" else sides
    rest = tuple(
        ScopeColumn(c.table, c.name, c.index + len(names), c.type,
                    made.schema[c.index + len(names)].nullable,
                    c.qualified_only or c.name in names)
        for side in ordered for c in side.columns
    )  # fmt: skip
    return made, Scope(merged_columns + rest)


def _only(scope: Scope, name: str, side: str) -> ScopeColumn:
    found = scope.matching((name,))
    if not found:
        message = f'column "{name}" specified in USING clause does not exist in {side} table'
        raise UndefinedName(message, hint=columns_hint(scope))
    if len(found) > 1:
        message = f'common column name "{name}" appears more than once in {side} table'
        raise AmbiguousName(message, hint="join with ON, and qualify the columns")
    return found[0]


def _lateral(
    at: _From, item: q.JoinText, names: tuple[str, ...] | None, left: Rows, right: Rows
) -> Rows:
    """Join with a right side that reads the columns of the left."""
    kind, inner, width = _KINDS[item.kind], right[0], left[0].width
    if item.kind in {"right", "full"}:
        message = f"a LATERAL item reads the other side of its {item.kind.upper()} JOIN"
        detail = "the combining JOIN type must be INNER or LEFT for a LATERAL reference"
        hint = "turn the join around, or use CROSS JOIN LATERAL or LEFT JOIN LATERAL … ON"
        raise UndefinedName(message, code="42P10", detail=detail, hint=hint)
    scope = left[1] + right[1].shifted(width)
    pairs = None if names is None else _pairs(item, left, right, names)
    tests: tuple[Scalar, ...] = ()
    if pairs is not None:
        tests = _equal(pairs, width)
    elif item.on is not None and reads_subquery(item.on):
        return _on_subquery(at, item, item.on, apply(left[0], inner, kind), scope)
    elif item.on is not None:
        tests = _conditions(at, item.on, apply(left[0], inner, JoinKind.INNER), scope)
    if tests:
        inner = Filter(inner, tuple(_inward(t, width) for t in tests))
    if _unnests(inner) and item.kind != "left":
        array = transform_scalar(inner.array, _outward)
        node: Node = FlatMap(left[0], array, inner.name, inner.ordinality)
    else:
        node = apply(left[0], inner, kind)
    if pairs is not None:
        return _merged(item, node, pairs, left, right)
    return node, _renulled(scope, node)


def _unnests(node: Node) -> TypeGuard[FlatMap]:
    """Return whether ``node`` is a table function alone: it can work on the rows to its left."""
    return isinstance(node, FlatMap) and node.input is ONE_EMPTY_ROW


def _outward(scalar: Scalar) -> Scalar:
    """Turn a reference to the left row into a column of it."""
    if isinstance(scalar, OuterRef):
        if scalar.depth == 1:
            return ColumnRef(scalar.index, scalar.type, scalar.nullable, scalar.name)
        return OuterRef(scalar.depth - 1, scalar.index, scalar.type, scalar.nullable, scalar.name)
    return scalar


def _inward(scalar: Scalar, width: int) -> Scalar:
    """Turn a condition over ``left ++ right`` into one over right that reads left as outer."""

    def change(part: Scalar) -> Scalar:
        if isinstance(part, ColumnRef):
            if part.index < width:
                return OuterRef(1, part.index, part.type, part.nullable, part.name)
            return ColumnRef(part.index - width, part.type, part.nullable, part.name)
        if isinstance(part, OuterRef):
            return OuterRef(part.depth + 1, part.index, part.type, part.nullable, part.name)
        return part

    return transform_scalar(scalar, change)
