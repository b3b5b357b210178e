"""Query → plan: names resolved, types decided, subqueries decorrelated.

``plan_query`` is the entry. With ``maintained`` (views), functions that are not functions
of the data are refused. ORDER BY without LIMIT orders only the answer of a SELECT; with
LIMIT or OFFSET it becomes a top-k, in views too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported, StatementError, UndefinedName, WrongType
from reclock.sql.names import Scope, ScopeColumn
from reclock.sql.plan.build.block import Block, CommonPlan, Planner, offering
from reclock.sql.plan.build.conjunct import now_in
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.build.select import plan_select
from reclock.sql.plan.coerce import convert, to_common
from reclock.sql.plan.comparable import distinct, matched, ordered
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Get,
    Negate,
    Project,
    QueryPlan,
    SortKey,
    Threshold,
    TopK,
    Union,
    column,
)
from reclock.sql.plan.scalar import Literal, Unbound
from reclock.sql.plan.temporal import check_temporal, misplaced
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax import expression as s
from reclock.sql.syntax import query as q
from reclock.sql.syntax.place import placed
from reclock.sql.types import BIGINT, UNKNOWN
from reclock.sql.zone import DEFAULT, in_zone, zone

if TYPE_CHECKING:
    from reclock.sql.names import CatalogItem, CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type


def plan_query(
    query: q.Query,
    catalog: CatalogView,
    *,
    maintained: bool = False,
    parameters: tuple[object, ...] = (),
) -> QueryPlan:
    """Plan ``query`` against ``catalog``; ``parameters`` are the values of $1, $2, ….

    What is maintained is planned in UTC: its rows are not one session's.
    """
    with placed(query), in_zone(DEFAULT if maintained else zone()):
        plan = _query(Planner(catalog, maintained, parameters, _query), query, None)
        if maintained:
            check_temporal(plan.root)
        return plan


def block_of(item: CatalogItem, alias: str | None = None) -> Block:
    """Return the rows and names of one relation: what UPDATE, DELETE and an index see.

    Planning an expression with a subquery over it adds columns to the end of its ``node``.
    """
    node = item.plan or Get(item.id, item.name, item.schema, item.timeline, item.unique_keys)
    columns = enumerate(item.schema)
    table = alias or item.name
    scope = Scope(tuple(ScopeColumn(table, c.name, i, c.type, c.nullable) for i, c in columns))
    return Block(node, scope)


def plan_scalar(
    expression: s.Expression,
    block: Block,
    catalog: CatalogView,
    parameters: tuple[object, ...] = (),
) -> Scalar:
    """Plan an expression over the rows of ``block``: an index key, a SET or WHERE."""
    planner = planner_of(catalog, parameters)
    with placed(expression):
        return ExpressionBuilder(planner, block)(expression)


def planner_of(catalog: CatalogView, parameters: tuple[object, ...]) -> Planner:
    """Return what plans the parts of a statement that is no query itself."""
    return Planner(catalog, maintained=False, parameters=parameters, query=_query)


def _query(planner: Planner, query: q.Query, outer: Block | None) -> QueryPlan:
    common = plan_common(planner, query.common, outer)
    plan = _body(planner, query, outer, common)
    return _limited(planner, plan, query)


def plan_common(
    planner: Planner, tables: tuple[q.CommonTable, ...], outer: Block | None
) -> dict[str, CommonPlan]:
    """Plan the queries of a WITH: each sees those before it."""
    common: dict[str, CommonPlan] = {}
    depth = 0 if outer is None else outer.depth + 1
    for table in tables:
        if table.alias.name in common:
            message = f'WITH query name "{table.alias.name}" specified more than once'
            raise StatementError(message, code="42712", hint="give one of them another name")
        around = Block(outer=outer, common=dict(common))
        inner = _within(planner, table.query, around)
        common[table.alias.name] = CommonPlan(_renamed(inner, table.alias), depth)
    return common


def _within(planner: Planner, query: q.Query, around: Block) -> Node:
    """Plan a WITH query: it sees the earlier ones, and what its query sees."""
    plan = _body(planner, query, around.outer, {**around.common, **_own(planner, query, around)})
    return _limited(planner, plan, query).relation


def _own(planner: Planner, query: q.Query, around: Block) -> dict[str, CommonPlan]:
    made: dict[str, CommonPlan] = {}
    for table in query.common:
        inner = Block(outer=around.outer, common={**around.common, **made})
        plan = _renamed(_within(planner, table.query, inner), table.alias)
        made[table.alias.name] = CommonPlan(plan, around.depth)
    return made


def _renamed(node: Node, alias: q.Alias) -> Node:
    if not alias.columns:
        return node
    if len(alias.columns) > node.width:
        message = f'WITH query "{alias.name}" has {node.width} columns'
        raise StatementError(message, code="42P10")
    names = [*alias.columns, *node.schema.names[len(alias.columns) :]]
    return Project(node, tuple((n, column(node, i)) for i, n in enumerate(names)))


def _body(
    planner: Planner, query: q.Query, outer: Block | None, common: dict[str, CommonPlan]
) -> QueryPlan:
    match query.body:
        case q.Select():
            return plan_select(planner, query.body, query.order_by, outer, common)
        case q.SetOperation():
            node = _set_operation(planner, query.body, outer, common)
        case q.Values():
            node = _values(planner, query.body, outer, common)
        case q.Query():
            inner = _query(planner, query.body, offering(outer, common))
            if not query.order_by:
                return inner
            node = inner.relation
    keys = tuple(_output_key(i, node) for i in query.order_by)
    return ordered(QueryPlan(node, node.width, keys))


def _output_key(item: s.SortItem, node: Node) -> SortKey:
    e = item.expression
    if isinstance(e, s.NumberText) and e.text.isdigit() and 1 <= int(e.text) <= node.width:
        return SortKey(int(e.text) - 1, item.descending, item.nulls_first)
    if isinstance(e, s.Name) and len(e.parts) == 1:
        fits = [i for i, n in enumerate(node.schema.names) if n == e.parts[0]]
        if len(fits) == 1:
            return SortKey(fits[0], item.descending, item.nulls_first)
        if not fits:
            message = f'column "{e}" does not exist'
            raise UndefinedName(message, position=e.position)
    message = "ORDER BY here may only use the result's column names or numbers"
    raise NotSupported(message, hint="put the expression in the select list, or in a subquery")


def _limited(planner: Planner, plan: QueryPlan, query: q.Query) -> QueryPlan:
    limit = _bound(planner, query.limit, "LIMIT")
    offset = _bound(planner, query.offset, "OFFSET") or 0
    if limit is None and not offset:
        return plan
    return QueryPlan(TopK(plan.root, (), plan.order, limit, offset), plan.visible, plan.order)


def _bound(planner: Planner, e: s.Expression | None, what: str) -> int | None:
    if e is None:
        return None
    value = ExpressionBuilder(planner, Block())(e)
    if isinstance(value, Unbound):
        value = convert(value, BIGINT)
    if not isinstance(value, Literal) or not isinstance(value.value, int | None):
        message = f"{what} must be a whole number"
        raise NotSupported(message, hint="expressions are not supported there")
    if value.value is not None and value.value < 0:
        message = f"{what} must not be negative"
        code = "2201W" if what == "LIMIT" else "2201X"
        raise StatementError(message, code=code, hint="write 0 or more, or leave it out")
    return value.value


def _set_operation(
    planner: Planner, body: q.SetOperation, outer: Block | None, common: dict[str, CommonPlan]
) -> Node:
    around = offering(outer, common)
    left, right = (_query(planner, side, around).relation for side in (body.left, body.right))
    if left.width != right.width:
        message = f"each {body.operator.upper()} query must have the same number of columns"
        hint = f"the left one has {left.width}, the right one {right.width}"
        raise WrongType(message, code="42601", hint=hint)
    untyped = _untyped(body.left), _untyped(body.right)
    kinds = []
    for at, pair in enumerate(zip(left.schema, right.schema, strict=True)):
        known = [
            side.get(at) or Literal(None, c.type) for side, c in zip(untyped, pair, strict=True)
        ]
        told = to_common(known, body.operator.upper())
        kinds.append(told[0].type)
        for side, literal in zip(untyped, told, strict=True):
            if at in side and isinstance(literal, Literal):
                side[at] = literal
    left, right = _as_types(left, kinds, untyped[0]), _as_types(right, kinds, untyped[1])
    if body.operator == "union":
        both = Union((left, right))
        return both if body.every else distinct(both)
    by_keys = matched(body.operator, left, right, every=body.every)
    if by_keys is not None:
        return by_keys
    if not body.every:
        left, right = Distinct(left), Distinct(right)
    missing = Threshold(Union((left, Negate(right))))
    return missing if body.operator == "except" else Union((left, Negate(missing)))


def _untyped(query: q.Query) -> dict[int, Literal]:
    """Return the columns of a query that are quoted literals or NULL, which have no type yet."""
    body = query.body
    if isinstance(body, q.Query) and not query.order_by:
        return _untyped(body)
    if not isinstance(body, q.Select) or any(isinstance(i.expression, s.Star) for i in body.items):
        return {}
    made = {}
    for at, item in enumerate(body.items):
        if isinstance(item.expression, s.NullText):
            made[at] = Literal(None, UNKNOWN)
        elif isinstance(item.expression, s.StringText):
            made[at] = Literal(item.expression.text, UNKNOWN)
    return made


def _as_types(node: Node, kinds: list[Type], untyped: dict[int, Literal]) -> Node:
    if [c.type for c in node.schema] == kinds:
        return node
    outputs = (
        (c.name, convert(untyped.get(i) or column(node, i), kinds[i]))
        for i, c in enumerate(node.schema)
    )
    return Project(node, tuple(outputs))


def _values(
    planner: Planner, body: q.Values, outer: Block | None, common: dict[str, CommonPlan]
) -> Node:
    block = Block(outer=outer, common=common)
    build = ExpressionBuilder(planner, block)
    width = len(body.rows[0])
    found = now_in(body.rows) if planner.maintained else None
    if found is not None:
        clause = "VALUES"
        raise misplaced(clause, found.position)
    if any(len(row) != width for row in body.rows):
        message = "VALUES lists must all be the same length"
        raise StatementError(message, code="42601")
    rows = [[build(cell) for cell in row] for row in body.rows]
    columns_ = [to_common([row[i] for row in rows], "VALUES") for i in range(width)]
    kinds = [cells[0].type for cells in columns_]
    converted = list(zip(*columns_, strict=True))
    names = [f"column{i + 1}" for i in range(width)]
    if all(isinstance(c, Literal) for row in converted for c in row):
        values = [tuple(c.value for c in row if isinstance(c, Literal)) for row in converted]
        columns = tuple(
            Column(names[i], kinds[i], any(v[i] is None for v in values)) for i in range(width)
        )
        counted = {v: values.count(v) for v in values}
        return Constant(Schema(columns), tuple(counted.items()))
    members = tuple(Project(block.node, tuple(zip(names, row, strict=True))) for row in converted)
    return members[0] if len(members) == 1 else Union(members)
