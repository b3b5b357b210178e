"""GROUP BY: aggregates and grouping sets, and what expressions mean afterwards.

Several grouping sets are the union of one Reduce per set, with NULL for the keys that a
set leaves out and a 0/1 column per key for GROUPING().
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from reclock.errors import NotSupported, StatementError, WrongGrouping
from reclock.sql.names import Scope, ScopeColumn
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.build.conjunct import aggregates_in, groupings_in, reads_subquery
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.coerce import convert
from reclock.sql.plan.comparable import comparison_key, reduced
from reclock.sql.plan.functions import find_aggregate, parameters_of
from reclock.sql.plan.functions.aggregate import AGGREGATE_SYNONYMS
from reclock.sql.plan.functions.overload import AnyOf
from reclock.sql.plan.interval_text import has_interval
from reclock.sql.plan.relation import (
    AggregateCall,
    Project,
    SortKey,
    Union,
    column,
)
from reclock.sql.plan.scalar import ColumnRef, Literal, OuterRef, Scalar
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.syntax import expression as s
from reclock.sql.types import INTEGER, TEXT, UNKNOWN, Numeric, as_numeric

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import Planner
    from reclock.sql.plan.node import Node
    from reclock.sql.syntax.query import Select

_ORDER_MATTERS = ("array_agg", "string_agg")
_COMPOUND = (
    s.Operator | s.FunctionText | s.CastText | s.CaseText | s.IsTest | s.InList | s.ArrayText
    | s.Subscript | s.FieldText | s.QuantifiedArray
)  # fmt: skip
"""What can be a grouping expression, besides a name."""

_CONSTANT = s.NumberText | s.StringText | s.BooleanText | s.NullText | s.IntervalText | s.CastText

_WITHIN_GROUP = ("percentile_cont", "percentile_disc", "mode")


class _Inputs:
    """Columns computed before grouping, each once."""

    def __init__(self) -> None:
        self.scalars: list[Scalar] = []

    def place(self, scalar: Scalar) -> int:
        if scalar not in self.scalars:
            self.scalars.append(scalar)
        return self.scalars.index(scalar)


def group(planner: Planner, select: Select, block: Block, later: tuple[object, ...]) -> Block:
    """Return the block after grouping; ``later`` is everything that is evaluated then."""
    calls = aggregates_in(later)
    build = ExpressionBuilder(planner, block)
    sets = [
        tuple(dict.fromkeys(e for part in chosen for e in part))
        for chosen in product(*(g.sets for g in select.group_by))
    ]
    written = list(dict.fromkeys(e for one in sets for e in one))
    meant = {e: _meant(select, e, build) for e in written}
    resolved = {e: build.value(meant[e]) for e in written}
    queries = {meant[e]: resolved[e] for e in written if reads_subquery(meant[e])}
    inputs = _Inputs()
    keys = list(dict.fromkeys(resolved.values()))
    for key in keys:
        inputs.place(key)
    made = [(c, _aggregate(build, c, inputs)) for c in calls]
    scalars = tuple(inputs.scalars)
    named = tuple((_name_of(x), x) for x in scalars)
    source = Project(block.node, named)
    aggregates = tuple((c.name, a) for c, a in made)
    groups = [tuple(sorted({keys.index(resolved[e]) for e in one})) for one in sets] or [()]
    node = _reduced(source, keys, aggregates, groups)
    after = Block(node, _grouped_scope(block.scope, keys, node), block.outer, block.common)
    for at, (written_call, _) in enumerate(made):
        after.known[written_call] = column(node, len(keys) + at)
    bits = len(keys) + len(made)
    for call_ in groupings_in(later):
        asked = [queries[a] if a in queries else build.value(a) for a in call_.arguments]
        after.known[call_] = _grouping(call_, asked, keys, node, bits, plain=len(groups) == 1)
    constants = _constants(select, keys, build)
    after.grouped = _Meaning(planner, block, keys, node, constants, queries)
    return after


def _constants(
    select: Select, keys: list[Scalar], build: ExpressionBuilder
) -> list[tuple[s.Expression, Scalar]]:
    """Return the outputs that are grouped by though they are constants, and their keys."""
    wanted = [key for key in keys if isinstance(key, Literal)]
    if not wanted:
        return []
    outputs = [i.expression for i in select.items if isinstance(i.expression, _CONSTANT)]
    values = [(e, build.value(e)) for e in outputs if not (aggregates_in(e) or reads_subquery(e))]
    first = (next(((e, v) for e, v in values if v == key), None) for key in wanted)
    return [found for found in first if found is not None]


def _name_of(scalar: Scalar) -> str:
    return scalar.name if isinstance(scalar, ColumnRef | OuterRef) else "key"


def _meant(select: Select, e: s.Expression, build: ExpressionBuilder) -> s.Expression:
    """Return a grouping expression: a column, else an output by number or alias, else any."""
    if isinstance(e, s.NumberText) and e.text.isdigit():
        at = int(e.text)
        if not 1 <= at <= len(select.items):
            message = f"GROUP BY position {at} is not in select list"
            hint = f"write a number from 1 to {len(select.items)}, or a name"
            raise StatementError(message, code="42P10", hint=hint)
        return select.items[at - 1].expression
    if isinstance(e, s.Name) and len(e.parts) == 1 and not build.block.scope.matching(e.parts):
        for item in select.items:
            if item.alias == e.parts[0]:
                return item.expression
    return e


def _aggregate(build: ExpressionBuilder, e: s.FunctionText, inputs: _Inputs) -> AggregateCall:
    arguments = tuple(build(a) for a in e.arguments)
    order = e.order
    if e.within_group:
        if e.name not in _WITHIN_GROUP:
            message = f"{e.name} is not an ordered-set aggregate"
            raise WrongGrouping(message, code="42809", position=e.position)
        if e.within_group[0].descending or len(e.within_group) > 1:
            message = "WITHIN GROUP in descending or compound order is not supported"
            hint = "order by one expression, ascending; negate a number to turn it round"
            raise NotSupported(message, hint=hint, position=e.position)
        arguments = (*arguments, build(e.within_group[0].expression))
    elif e.name in _WITHIN_GROUP:
        message = f"WITHIN GROUP is required for ordered-set aggregate {e.name}"
        raise WrongGrouping(message, code="42809", position=e.position)
    if e.star and e.distinct:
        message = "DISTINCT specified, but there is nothing that could be distinct"
        hint = "count(DISTINCT x) counts the values of x"
        raise WrongGrouping(message, code="42601", hint=hint, position=e.position)
    if e.star and e.name != "count":
        message = f"{e.name}(*) does not exist"
        raise WrongGrouping(message, code="42883", position=e.position)
    if e.star is False and not arguments and e.name == "count":
        message = "count(*) must be used to call a parameterless aggregate function"
        raise WrongGrouping(message, code="42809", position=e.position)
    name = AGGREGATE_SYNONYMS.get(e.name, e.name)
    found = find_aggregate(name, tuple(a.type for a in arguments), e.position)
    converted = []
    for argument, parameter in zip(arguments, parameters_of(found, len(arguments)), strict=True):
        wanted = argument.type
        if not isinstance(parameter, AnyOf):
            wanted = parameter
        elif argument.type == UNKNOWN:
            wanted = TEXT
        elif parameter.name == "numeric" and not isinstance(argument.type, Numeric):
            wanted = as_numeric(argument.type)
        converted.append(convert(argument, wanted))
    result = found.result_type(tuple(a.type for a in converted))
    sorted_by = tuple(build.value(i.expression) for i in order)
    sort = tuple(
        SortKey(inputs.place(comparison_key(value)), i.descending, i.nulls_first)
        for i, value in zip(order, sorted_by, strict=True)
        if name in _ORDER_MATTERS
    )
    condition = None if e.filter is None else build.condition(e.filter, "FILTER")
    _check_level(e, (*converted, *sorted_by, *(() if condition is None else (condition,))))
    distinct = e.distinct and name not in {"min", "max", "bool_and", "bool_or"}
    if distinct:
        converted = _told_apart(name, converted, e.position)
    return AggregateCall(
        found,
        tuple(inputs.place(a) for a in converted),
        result,
        distinct,
        None if condition is None else inputs.place(condition),
        sort,
    )


def _check_level(e: s.FunctionText, read: tuple[Scalar, ...]) -> None:
    """Refuse an aggregate over columns of an enclosing query only: it is that query's."""
    levels = {type(part) for scalar in read for part in walk_scalar(scalar)}
    if OuterRef in levels and ColumnRef not in levels:
        message = f"{e.name} over columns of an enclosing query only is not supported"
        detail = "it would aggregate the rows of that query, not of the one it stands in"
        hint = "compute it in a subquery of the enclosing query's FROM, and use its column here"
        raise NotSupported(message, detail=detail, hint=hint, position=e.position)


def _told_apart(name: str, arguments: list[Scalar], position: int | None) -> list[Scalar]:
    """Return the arguments of a DISTINCT aggregate: equal ones must be the same."""
    if name == "count":
        return [comparison_key(argument) for argument in arguments]
    if any(has_interval(argument.type) for argument in arguments):
        message = f"{name}(DISTINCT …) of intervals is not supported"
        hint = "take the distinct values in a subquery: SELECT DISTINCT …"
        raise NotSupported(message, hint=hint, position=position)
    return arguments


def _reduced(
    source: Node,
    keys: list[Scalar],
    aggregates: tuple[tuple[str, AggregateCall], ...],
    groups: list[tuple[int, ...]],
) -> Node:
    """Return rows of all keys, all aggregates, and with several sets one bit per key."""
    everything = tuple(range(len(keys)))
    if groups == [everything]:
        return reduced(source, everything, aggregates)
    members = []
    for one in groups:
        made = reduced(source, one, aggregates)
        outputs: list[tuple[str, Scalar]] = []
        for at, key in enumerate(keys):
            name = source.schema[at].name
            value: Scalar = Literal(None, key.type)
            if at in one:
                value = column(made, one.index(at))
            outputs.append((name, value))
        outputs += [(name, column(made, len(one) + at)) for at, (name, _) in enumerate(aggregates)]
        outputs += [("grouping", Literal(0 if at in one else 1, INTEGER)) for at in everything]
        members.append(Project(made, tuple(outputs)))
    return members[0] if len(members) == 1 else Union(tuple(members))


def _grouping(
    e: s.FunctionText,
    asked: list[Scalar],
    keys: list[Scalar],
    node: Node,
    bits: int,
    *,
    plain: bool,
) -> Scalar:
    total: Scalar = Literal(0, INTEGER)
    for key in asked:
        if key not in keys:
            message = "arguments to GROUPING must be grouping expressions of the query"
            raise WrongGrouping(message, position=e.position)
        bit: Scalar = Literal(0, INTEGER)
        if not plain or node.width > bits:
            bit = column(node, bits + keys.index(key))
        total = call("+", (call("*", (total, Literal(2, INTEGER))), bit))
    return total


def _grouped_scope(scope: Scope, keys: list[Scalar], node: Node) -> Scope:
    """Return the names that subqueries still see: those that are grouping columns."""
    columns = []
    for c in scope.columns:
        ref = ColumnRef(c.index, c.type, c.nullable)
        if ref in keys:
            at = keys.index(ref)
            of = node.schema[at]
            columns.append(ScopeColumn(c.table, c.name, at, of.type, of.nullable, c.qualified_only))
    return Scope(tuple(columns))


class _Meaning:
    """What an expression means after grouping, if it is a grouping expression.

    One with a subquery, which becomes other columns wherever it stands, is known by how it is
    written. Of equal constants only that output is one which is grouped by: NULL where its set is
    not there.
    """

    def __init__(  # noqa: PLR0917 - all that GROUP BY has been made into
        self,
        planner: Planner,
        before: Block,
        keys: list[Scalar],
        node: Node,
        constants: list[tuple[s.Expression, Scalar]],
        queries: dict[s.Expression, Scalar],
    ) -> None:
        self._planner = planner
        self._before = before
        self._keys = keys
        self._node = node
        self._constants = constants
        self._queries = queries

    def __call__(self, e: s.Expression) -> Scalar | None:
        if isinstance(e, s.Name):
            scalar: Scalar = self._before.resolve(e)
            if isinstance(scalar, OuterRef):
                return scalar
            if scalar not in self._keys:
                message = (
                    f'column "{e}" must appear in the GROUP BY clause '
                    "or be used in an aggregate function"
                )
                hint = f"add it to GROUP BY, or write min({e}), max({e}) or array_agg({e})"
                raise WrongGrouping(message, hint=hint, position=e.position)
            return column(self._node, self._keys.index(scalar))
        if e in self._queries:
            return column(self._node, self._keys.index(self._queries[e]))
        key = next((key for constant, key in self._constants if e is constant), None)
        if key is None and isinstance(e, _COMPOUND):
            key = self._compound(e)
        return None if key is None else column(self._node, self._keys.index(key))

    def _compound(self, e: s.Expression) -> Scalar | None:
        if aggregates_in(e) or reads_subquery(e):
            return None
        try:
            scalar = ExpressionBuilder(self._planner, self._before).value(e)
        except StatementError:
            return None
        return scalar if scalar in self._keys else None
