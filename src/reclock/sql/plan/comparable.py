"""Values that are equal without being the same: what groups, joins and sorts uses a key.

Everything below a plan tells rows apart by their bytes, and for every type but the interval that
is SQL's equality. ``'1 mon'`` and ``'30 days'`` are equal and two values, with two texts. So a
plan never groups, joins or sorts by an interval: it does so by a computed column, the *key*::

    a = b                 key(a) = key(b)
    GROUP BY a, DISTINCT  group by key(a), and take a from the first row of the group
    ORDER BY a            sort by key(a)

and the rows themselves keep their bytes: tables, deltas and decorrelation tell both apart. Which
of several equal values a group shows is not said by SQL; here it is that of its least row, so
that a view does not depend on arrival.

Tests: tests/session/test_intervals.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported
from reclock.sql.plan.functions import find_aggregate
from reclock.sql.plan.functions.overload import Overload
from reclock.sql.plan.interval_text import has_interval, key_text, key_type, key_value
from reclock.sql.plan.relation import (
    AggregateCall,
    Distinct,
    Join,
    JoinKind,
    KeyPair,
    Project,
    QueryPlan,
    Reduce,
    SortKey,
    column,
    keep,
)
from reclock.sql.plan.scalar import Call, Case, Literal, Scalar
from reclock.sql.types import BOOLEAN, JSON, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.sql.plan.node import Node
    from reclock.sql.types import Type

NAME = "comparison key"


def comparison_key(scalar: Scalar) -> Scalar:
    """Return what ``scalar`` is compared by: itself, unless intervals are in it.

    >>> from reclock.interval import Interval
    >>> from reclock.sql.types import INTERVAL
    >>> str(comparison_key(Literal(Interval(days=1), INTERVAL)))
    '86400000000'
    """
    kind = scalar.type
    if not has_interval(kind):
        return scalar
    made = key_type(kind)
    if isinstance(scalar, Literal) and not isinstance(kind, Record):
        return Literal(key_value(scalar.value, kind), made)
    text = key_text("\0", kind).replace("{", "{{}").replace("\0", "{0}")
    return Call(Overload(NAME, (kind,), made, text), (scalar,), made)


def compared(name: str, arguments: tuple[Scalar, ...]) -> Scalar | None:
    """Return nullif, greatest or least of intervals; None if there are none."""
    kind = arguments[0].type
    if not has_interval(kind):
        return None
    if name == "nullif":
        equal = Overload("=", (key_type(kind),) * 2, BOOLEAN, "({0} = {1})")
        keys = tuple(map(comparison_key, arguments))
        return Case(((Call(equal, keys, BOOLEAN), Literal(None, kind)),), arguments[0])
    order = range(len(arguments)) if name == "least" else range(len(arguments), 0, -1)
    entries = [
        f"CASE WHEN {{{at}}} IS NOT NULL THEN named_struct('k', "
        + key_text(f"{{{at}}}", kind).replace("'{", "'{{}")
        + f", 'n', {number}, 'v', {{{at}}}) END"
        for at, number in enumerate(order)
    ]
    text = f"{name}({', '.join(entries)}).v"
    function = Overload(name, (kind,) * len(arguments), kind, text, makes_null=True)
    return Call(function, arguments, kind)


def keyed(node: Node, columns: Iterable[int]) -> tuple[Node, dict[int, int]]:
    """Add the keys of ``columns`` that need one to ``node``; return where each one's key is."""
    wanted = dict.fromkeys(columns)
    place = {at: at for at in wanted}
    added: list[Scalar] = []
    for at in wanted:
        if has_interval(node.schema[at].type):
            place[at] = node.width + len(added)
            added.append(comparison_key(column(node, at)))
    if not added:
        return node, place
    kept = tuple((c.name, column(node, i)) for i, c in enumerate(node.schema))
    return Project(node, (*kept, *(("key", scalar) for scalar in added))), place


def check_order(kind: Type) -> None:
    """Refuse to sort by json: as text it has not the order of PostgreSQL's jsonb."""
    if kind == JSON:
        message = "an order of json is not supported"
        raise NotSupported(message, hint="order by a member: j ->> 'a'")


def sorted_by(order: Sequence[SortKey], place: dict[int, int]) -> tuple[SortKey, ...]:
    """Return ``order`` by the keys of its columns."""
    return tuple(SortKey(place[k.column], k.descending, k.nulls_first) for k in order)


def ordered(plan: QueryPlan) -> QueryPlan:
    """Return a query that is ordered by keys, in hidden columns."""
    for key in plan.order:
        check_order(plan.root.schema[key.column].type)
    root, place = keyed(plan.root, (k.column for k in plan.order))
    return QueryPlan(root, plan.visible, sorted_by(plan.order, place))


def distinct(node: Node) -> Node:
    """Return each row once, of equal ones the least."""
    if not any(has_interval(c.type) for c in node.schema):
        return Distinct(node)
    return reduced(node, tuple(range(node.width)), ())


def reduced(
    source: Node, keys: tuple[int, ...], aggregates: tuple[tuple[str, AggregateCall], ...]
) -> Node:
    """Return ``Reduce``, with each key as the first row of its group has it."""
    shown = [at for at in keys if has_interval(source.schema[at].type)]
    if not shown:
        return Reduce(source, keys, aggregates)
    wide, place = keyed(source, keys)
    order = tuple(SortKey(at) for at in dict.fromkeys(shown))
    firsts = tuple(
        (source.schema[k.column].name, _first(k.column, source.schema[k.column].type, order))
        for k in order
    )
    made = Reduce(wide, tuple(place[at] for at in keys), (*aggregates, *firsts))
    start = len(keys) + len(aggregates)
    where = {at: start + nth for nth, at in enumerate(dict.fromkeys(shown))}
    outputs = [where.get(at, nth) for nth, at in enumerate(keys)]
    outputs += range(len(keys), start)
    return keep(made, tuple(outputs))


def _first(at: int, kind: Type, order: tuple[SortKey, ...]) -> AggregateCall:
    return AggregateCall(find_aggregate("any_row", (kind,)), (at,), kind, order=order)


def matched(operator: str, left: Node, right: Node, *, every: bool) -> Node | None:
    """Return ``left EXCEPT | INTERSECT right`` by keys; None if no column needs one."""
    if not any(has_interval(c.type) for c in left.schema):
        return None
    if every:
        message = f"{operator.upper()} ALL of intervals is not supported"
        raise NotSupported(message, hint=f"{operator.upper()} without ALL is")
    everything = range(left.width)
    one, ours = keyed(distinct(left), everything)
    other, theirs = keyed(right, everything)
    pairs = tuple(KeyPair(ours[at], theirs[at], null_safe=True) for at in everything)
    kind = JoinKind.ANTI if operator == "except" else JoinKind.SEMI
    return keep(Join(kind, one, other, pairs), everything)
