"""SELECT: from FROM to the output columns, and the expressions ORDER BY may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.errors import NotSupported, StatementError, UndefinedName
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.build.conjunct import (
    aggregates_in,
    conjuncts,
    groupings_in,
    now_in,
    reads_subquery,
    windows_in,
)
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.build.group import group
from reclock.sql.plan.build.output_name import output_name
from reclock.sql.plan.build.source import plan_from
from reclock.sql.plan.build.subquery import exists_filter, in_filter
from reclock.sql.plan.build.window import add_windows, check_windows
from reclock.sql.plan.comparable import distinct, keyed, ordered, sorted_by
from reclock.sql.plan.condition_order import in_order
from reclock.sql.plan.relation import Filter, Project, QueryPlan, SortKey, TopK
from reclock.sql.plan.temporal import misplaced
from reclock.sql.syntax import expression as s
from reclock.sql.syntax import query as q

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import CommonPlan, Planner
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar


@dataclass(slots=True)
class _Output:
    """The columns of a SELECT under construction; hidden ones follow the visible ones."""

    columns: list[tuple[str, Scalar]]
    visible: int

    def place(self, scalar: Scalar) -> int:
        for at, (_, known) in enumerate(self.columns):
            if known == scalar:
                return at
        self.columns.append(("sort", scalar))
        return len(self.columns) - 1


def plan_select(
    planner: Planner,
    select: q.Select,
    order_by: tuple[s.SortItem, ...],
    outer: Block | None,
    common: dict[str, CommonPlan],
) -> QueryPlan:
    """Plan one SELECT with its ORDER BY."""
    if planner.maintained:
        _check_now(select, order_by)
    block = Block(outer=outer, common=common)
    if select.source is not None:
        block.node, block.scope = plan_from(planner, select.source, block)
    if select.where is not None:
        filter_where(planner, block, select.where)
    items = expanded(select.items, block)
    later = (
        tuple(e for _, e in items), select.having, tuple(i.expression for i in order_by),
        select.distinct_on,
    )  # fmt: skip
    windowed = windows_in(later)
    inside = tuple((w.arguments, w.filter, w.over) for w in windowed)
    named = tuple(w for _, w in select.windows)
    grouped = bool(select.group_by or select.having or aggregates_in((later, inside, named)))
    if grouped or groupings_in(later):
        block = group(planner, select, block, (later, inside, named))
    if select.having is not None:
        having = ExpressionBuilder(planner, block)
        conditions = [having.condition(c, "HAVING") for c in conjuncts(select.having)]
        block.node = Filter(block.node, in_order(conditions))
    check_windows(planner, select, block)
    if windowed:
        add_windows(planner, select, block, windowed)
    build = ExpressionBuilder(planner, block)
    output = _Output([(name, build.value(e)) for name, e in items], len(items))
    keys = tuple(_sort_key(i, select, items, output, build) for i in order_by)
    if select.distinct_on:
        return _distinct_on(select, block, output, keys, build, items)
    if select.distinct and len(output.columns) > output.visible:
        message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
        raise StatementError(message, code="42P10")
    node: Node = Project(block.node, tuple(output.columns))
    return ordered(QueryPlan(distinct(node) if select.distinct else node, output.visible, keys))


def _check_now(select: q.Select, order_by: tuple[s.SortItem, ...]) -> None:
    """Refuse ``mz_now()`` where it is not a condition."""
    clauses = {
        "the SELECT list": select.items,
        "GROUP BY": select.group_by,
        "DISTINCT ON": select.distinct_on,
        "WINDOW": select.windows,
        "ORDER BY": order_by,
    }
    for clause, written in clauses.items():
        found = now_in(written)
        if found is not None:
            raise misplaced(clause, found.position)


def filter_where(planner: Planner, block: Block, where: s.Expression) -> None:
    """Filter the block; plain conditions first, subqueries as semi and anti joins."""
    if aggregates_in(where):
        message = "aggregate functions are not allowed in WHERE"
        raise StatementError(message, code="42803", hint="use HAVING")
    written = conjuncts(where)
    build = ExpressionBuilder(planner, block)
    plain = in_order(build.condition(c, "WHERE") for c in written if not reads_subquery(c))
    if plain:
        block.node = Filter(block.node, plain)
    for condition in written:
        if not reads_subquery(condition):
            continue
        positive = condition
        negated = False
        while isinstance(positive, s.Operator) and positive.symbol == "not":
            positive, negated = positive.operands[0], not negated
        if isinstance(positive, s.ExistsQuery):
            exists_filter(planner, block, positive.query, negated=negated)
        elif isinstance(positive, s.QuantifiedQuery) and not positive.every and not negated:
            rows = (
                positive.operand.items
                if isinstance(positive.operand, s.RowText)
                else (positive.operand,)
            )
            in_filter(planner, block, tuple(build(r) for r in rows), positive)
        else:
            made = build.condition(condition, "WHERE")
            block.node = Filter(block.node, (made,))


def expanded(given: tuple[q.SelectItem, ...], block: Block) -> list[tuple[str, s.Expression]]:
    """Return the output expressions with their names, stars expanded."""
    items: list[tuple[str, s.Expression]] = []
    for item in given:
        if isinstance(item.expression, s.Star):
            items += _star(item.expression, block)
        else:
            items.append((item.alias or output_name(item.expression), item.expression))
    return items


def _star(star: s.Star, block: Block) -> list[tuple[str, s.Expression]]:
    qualifier = star.qualifier[-1] if star.qualifier else None
    columns = block.scope.star(qualifier)
    if qualifier is not None and qualifier not in block.scope.tables:
        message = f'missing FROM-clause entry for table "{qualifier}"'
        hint = f"FROM has {', '.join(sorted(block.scope.tables)) or 'nothing'}"
        raise UndefinedName(message, code="42P01", hint=hint, position=star.position)
    if not columns and qualifier is None and not block.scope.columns:
        message = "SELECT * with no tables specified is not valid"
        raise StatementError(message, code="42601", position=star.position)
    made: list[tuple[str, s.Expression]] = []
    for c in columns:
        parts = (c.name,) if c.table is None else (c.table, c.name)
        found = block.scope.matching(parts)
        if len(found) > 1:
            message = f'column "{".".join(parts)}" cannot be told from another of that name'
            raise NotSupported(message, hint="give the columns of the subquery distinct names")
        made.append((c.name, s.Name(parts, star.position)))
    return made


def _sort_key(
    item: s.SortItem,
    select: q.Select,
    items: list[tuple[str, s.Expression]],
    output: _Output,
    build: ExpressionBuilder,
) -> SortKey:
    e = item.expression
    if isinstance(e, s.NumberText) and e.text.isdigit():
        at = int(e.text) - 1
        if not 0 <= at < output.visible:
            message = f"ORDER BY position {e.text} is not in select list"
            hint = f"write a number from 1 to {output.visible}, or a name"
            raise StatementError(message, code="42P10", hint=hint)
        return SortKey(at, item.descending, item.nulls_first)
    if isinstance(e, s.Name) and len(e.parts) == 1:
        fits = [i for i, (name, _) in enumerate(items) if name == e.parts[0]]
        different = {output.columns[i][1] for i in fits}
        if len(different) == 1:
            return SortKey(fits[0], item.descending, item.nulls_first)
        if len(different) > 1:
            message = f'ORDER BY "{e}" is ambiguous'
            raise StatementError(message, code="42702", position=e.position)
    return SortKey(output.place(build.value(e)), item.descending, item.nulls_first)


def _distinct_on(  # noqa: PLR0917 - all that a SELECT has been made of so far
    select: q.Select,
    block: Block,
    output: _Output,
    keys: tuple[SortKey, ...],
    build: ExpressionBuilder,
    items: list[tuple[str, s.Expression]],
) -> QueryPlan:
    group_keys = [
        _sort_key(s.SortItem(e), select, items, output, build).column for e in select.distinct_on
    ]
    first = [k.column for k in keys[: len(set(group_keys))]]
    if keys and not set(first) <= set(group_keys):
        message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
        raise StatementError(message, code="42P10", hint="order by the same expressions first")
    node = Project(block.node, tuple(output.columns))
    wide, place = keyed(node, (*group_keys, *(k.column for k in keys)))
    order = sorted_by(keys, place)
    top = TopK(wide, tuple(place[at] for at in dict.fromkeys(group_keys)), order, 1)
    return QueryPlan(top, output.visible, order)
