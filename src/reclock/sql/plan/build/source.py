"""FROM: relations, subqueries, table functions and joins, as rows with a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import AmbiguousName, NotSupported, UndefinedName
from reclock.sql.names import Scope, ScopeColumn, columns_hint, resolve_relation
from reclock.sql.plan.build.block import ONE_EMPTY_ROW, Block, offering
from reclock.sql.plan.build.conjunct import conjuncts, reads_subquery
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.build.tables import table_function
from reclock.sql.plan.coerce import common_type, convert
from reclock.sql.plan.decorrelate import apply, redepth
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
from reclock.sql.plan.scalar import Coalesce, ColumnRef, OuterRef, Scalar
from reclock.sql.plan.scalar import transform as transform_scalar
from reclock.sql.syntax import query as q

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import Planner
    from reclock.sql.plan.node import Node

Rows = tuple["Node", Scope]

_KINDS = {"inner": JoinKind.INNER, "cross": JoinKind.INNER, "left": JoinKind.LEFT,
          "right": JoinKind.LEFT, "full": JoinKind.FULL}  # fmt: skip


def plan_from(planner: Planner, item: q.FromItem, block: Block) -> Rows:
    """Return the rows of ``item``; names it uses are those of the queries around ``block``."""
    node, scope = _item(planner, item, block)
    return (redepth(node, -1) if _is_lateral(item) else node), scope


def _item(planner: Planner, item: q.FromItem, block: Block) -> Rows:
    """Return the rows of ``item``; a lateral one reads ``block`` as its enclosing query."""
    match item:
        case q.TableName():
            return _table(planner, item, block)
        case q.DerivedTable():
            outer = block if item.lateral else offering(block.outer, block.common)
            node = planner.query(planner, item.query, outer).relation
            return node, _scope(node, item.alias, None, item.alias)
        case q.TableFunction():
            return _function(planner, item, block)
        case q.JoinText():
            return _join(planner, item, block)


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


def _table(planner: Planner, item: q.TableName, block: Block) -> Rows:
    parts = item.name.parts
    shared = block.find_common(parts[0]) if len(parts) == 1 else None
    node: Node
    if shared is not None:
        node = redepth(shared.plan, block.depth - shared.depth)
    else:
        found = resolve_relation(planner.catalog, item.name)
        if found.plan is not None:
            node = found.plan
        else:
            node = Get(found.id, found.name, found.schema, found.timeline, found.unique_keys)
    return node, _scope(node, item.alias, parts[-1], item.alias)


def _function(planner: Planner, item: q.TableFunction, block: Block) -> Rows:
    """Plan a table function; its arguments see ``block``, which is the rows to its left."""
    build = ExpressionBuilder(planner, Block(outer=block))
    array = table_function(item, tuple(build(a) for a in item.arguments))
    name = item.name if item.alias is None else item.alias.name
    made = FlatMap(ONE_EMPTY_ROW, array, name, item.ordinality)
    return made, _scope(made, item.alias, name, item.alias)


def _is_lateral(item: q.FromItem) -> bool:
    return isinstance(item, q.TableFunction) or (isinstance(item, q.DerivedTable) and item.lateral)


def _join(planner: Planner, item: q.JoinText, block: Block) -> Rows:
    left, left_scope = plan_from(planner, item.left, block)
    if _is_lateral(item.right):
        return _lateral(planner, item, block, (left, left_scope))
    right, right_scope = plan_from(planner, item.right, block)
    clash = (left_scope.tables & right_scope.tables) - {None}
    if clash:
        message = f'table name "{min(clash)}" specified more than once'
        raise AmbiguousName(message, code="42712", hint="give one of them an alias")
    if item.kind == "right":
        mirrored, scope = _joined(planner, item, block, (right, right_scope), (left, left_scope))
        order = [*range(right.width, right.width + left.width), *range(right.width)]
        if item.using or item.natural:
            return mirrored, scope
        place = {old: new for new, old in enumerate(order)}
        moved = sorted(
            (ScopeColumn(c.table, c.name, place[c.index], c.type, c.nullable, c.qualified_only)
             for c in scope.columns), key=lambda c: c.index,
        )  # fmt: skip
        return keep(mirrored, tuple(order)), Scope(tuple(moved))
    return _joined(planner, item, block, (left, left_scope), (right, right_scope))


def _joined(planner: Planner, item: q.JoinText, block: Block, left: Rows, right: Rows) -> Rows:
    kind = _KINDS[item.kind]
    scope = left[1] + right[1].shifted(left[0].width)
    names = _shared_names(item, left[1], right[1])
    if names is not None:
        return _using(item, kind, left, right, names)
    predicates: tuple[Scalar, ...] = ()
    if item.on is not None:
        if reads_subquery(item.on):
            return _on_subquery(planner, item, block, (left, right), scope)
        inside = Block(Join(JoinKind.INNER, left[0], right[0]), scope, block.outer, block.common)
        build = ExpressionBuilder(planner, inside)
        predicates = tuple(build.condition(c, "JOIN/ON") for c in conjuncts(item.on))
    node = Join(kind, left[0], right[0], (), predicates)
    return node, _renulled(scope, node)


def _on_subquery(
    planner: Planner, item: q.JoinText, block: Block, sides: tuple[Rows, Rows], scope: Scope
) -> Rows:
    if item.kind not in {"inner", "cross"} or item.on is None:
        message = "a subquery in the condition of an outer join is not supported"
        hint = "compute it in a derived table of that side, and join on its column"
        raise NotSupported(message, hint=hint)
    inside = Block(Join(JoinKind.INNER, sides[0][0], sides[1][0]), scope, block.outer, block.common)
    width = inside.node.width
    condition = ExpressionBuilder(planner, inside).condition(item.on, "JOIN/ON")
    return keep(Filter(inside.node, (condition,)), range(width)), scope


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


def _using(
    item: q.JoinText, kind: JoinKind, left: Rows, right: Rows, names: tuple[str, ...]
) -> Rows:
    """Join on equal names; each comes out once, before all other columns."""
    predicates: list[Scalar] = []
    pairs = []
    for name in names:
        a, b = _only(left[1], name, "left"), _only(right[1], name, "right")
        wanted = common_type((a.type, b.type), "JOIN/USING")
        x: Scalar = ColumnRef(a.index, a.type, a.nullable, a.name)
        y: Scalar = ColumnRef(b.index + left[0].width, b.type, b.nullable, b.name)
        predicates.append(call("=", (convert(x, wanted), convert(y, wanted))))
        pairs.append((a, b, wanted))
    node = Join(kind, left[0], right[0], (), tuple(predicates))
    outputs: list[tuple[str, Scalar]] = []
    for name, (a, b, wanted) in zip(names, pairs, strict=True):
        first = convert(column(node, a.index), wanted)
        second = convert(column(node, b.index + left[0].width), wanted)
        merged = Coalesce((first, second)) if kind is JoinKind.FULL else first
        outputs.append((name, merged))
    outputs += [(c.name, column(node, i)) for i, c in enumerate(node.schema)]
    made = Project(node, tuple(outputs))
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


def _lateral(planner: Planner, item: q.JoinText, block: Block, left: Rows) -> Rows:
    """Join with a right side that sees the columns of the left."""
    if item.kind not in {"inner", "cross", "left"} or item.using or item.natural:
        message = f"LATERAL in a {item.kind.upper()} JOIN is not supported"
        raise NotSupported(message, hint="use CROSS JOIN LATERAL or LEFT JOIN LATERAL … ON")
    inside = Block(left[0], left[1], block.outer, block.common)
    inner, inner_scope = _item(planner, item.right, inside)
    scope = left[1] + inner_scope.shifted(left[0].width)
    if item.on is not None and reads_subquery(item.on):
        message = "a subquery in the condition of a LATERAL join is not supported"
        raise NotSupported(message, hint="put the condition inside the subquery, or in WHERE")
    if item.on is not None:
        both = Block(Join(JoinKind.INNER, left[0], redepth(inner, 0)), scope, block.outer)
        build = ExpressionBuilder(planner, both)
        tests = tuple(build.condition(c, "JOIN/ON") for c in conjuncts(item.on))
        inner = Filter(inner, tuple(_inward(t, left[0].width) for t in tests))
    if isinstance(inner, FlatMap) and inner.input is ONE_EMPTY_ROW and item.kind != "left":
        array = transform_scalar(inner.array, _outward)
        node: Node = FlatMap(left[0], array, inner.name, inner.ordinality)
    else:
        node = apply(left[0], inner, _KINDS[item.kind])
    return node, _renulled(scope, node)


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
