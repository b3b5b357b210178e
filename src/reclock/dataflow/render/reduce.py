"""Aggregates divided among the operators that keep them.

``divided`` writes a Reduce whose aggregates need different operators as a join of parts,
one per operator, on the group's key: every part has exactly the groups that exist, so an
inner join that matches NULL with NULL puts them together again. ::

    accumulators          one part                       cost: the changed rows
    min, max              the first row of each group    cost: the changed rows
    DISTINCT aggregates   accumulators over distinct values
    all others            one part, computed by Spark    cost: the changed groups

min(x) is the first row by x with NULLs last, so a group whose x are all NULL has the row
with NULL; without keys a row of NULLs is added to the input, so there is always a first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.accumulate.average import average_of
from reclock.dataflow.operators.accumulate.count import Counted
from reclock.dataflow.operators.accumulate.total import sum_of
from reclock.dataflow.operators.accumulate.truth import Truth
from reclock.dataflow.operators.accumulate.variance import Variance
from reclock.dataflow.operators.reduce import Reduce as ReduceOperator
from reclock.dataflow.steps import accumulate, groups
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.errors import NotSupported
from reclock.sql.plan.comparable import keyed
from reclock.sql.plan.functions.aggregate import FAST, HEAD
from reclock.sql.plan.relation import (
    AggregateCall,
    Constant,
    Distinct,
    Join,
    JoinKind,
    KeyPair,
    Project,
    Reduce,
    SortKey,
    TopK,
    Union,
    column,
    keep,
)
from reclock.sql.plan.scalar import Case, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.dataflow.operators.accumulate.aggregate import Aggregate
    from reclock.dataflow.render.builder import Builder
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar


def divided(node: Reduce) -> Node:
    """Return ``node`` itself if one operator keeps it, else an equal plan of parts."""
    heads = [i for i, (_, c) in enumerate(node.aggregates) if c.how == HEAD]
    uniques = [
        i
        for i, (_, c) in enumerate(node.aggregates)
        if c.distinct and c.how != HEAD and c.function.how == FAST
    ]
    special = {*heads, *uniques}
    fast = [i for i, (_, c) in enumerate(node.aggregates) if i not in special and c.how == FAST]
    general = [i for i in range(len(node.aggregates)) if i not in special and i not in fast]
    if not special and not (fast and general):
        return node
    parts: list[tuple[list[int], Node]] = []
    for chosen in (fast, general):
        if chosen:
            aggregates = tuple(node.aggregates[i] for i in chosen)
            parts.append((chosen, Reduce(node.input, node.keys, aggregates)))
    parts += [([i], _head(node, *node.aggregates[i])) for i in heads]
    parts += [([i], _distinct(node, *node.aggregates[i])) for i in uniques]
    return _joined(node, parts)


def _joined(node: Reduce, parts: list[tuple[list[int], Node]]) -> Node:
    """Join the parts on the key, and put the aggregates in their places."""
    width = len(node.keys)
    places: dict[int, int] = {}
    whole: Node | None = None
    for chosen, part in parts:
        start = 0 if whole is None else whole.width
        places |= {i: start + width + nth for nth, i in enumerate(chosen)}
        pairs = tuple(KeyPair(i, i, null_safe=True) for i in range(width))
        whole = part if whole is None else Join(JoinKind.INNER, whole, part, pairs)
    assert whole is not None
    order = (*range(width), *(places[i] for i in range(len(node.aggregates))))
    names = node.schema.names
    outputs = tuple((names[at], column(whole, i)) for at, i in enumerate(order))
    return Project(whole, outputs)


def _argument(node: Reduce, call: AggregateCall) -> Scalar:
    """Return the argument; NULL where the filter is not true."""
    argument: Scalar = column(node.input, call.arguments[0])
    if call.filter is None:
        return argument
    return Case(((column(node.input, call.filter), argument),), Literal(None, argument.type))


def _values(node: Reduce, name: str, call: AggregateCall) -> Project:
    keys = [(node.input.schema[k].name, column(node.input, k)) for k in node.keys]
    return Project(node.input, (*keys, (name, _argument(node, call))))


def _head(node: Reduce, name: str, call: AggregateCall) -> Node:
    """Return the key and the least or greatest value of each group."""
    rows: Node = _values(node, name, call)
    if not node.keys:
        rows = Union((rows, Constant(rows.schema, (((None,), 1),))))
    at = len(node.keys)
    rows, place = keyed(rows, (at,))
    order = SortKey(place[at], descending=call.function.name == "max", nulls_first=False)
    return keep(TopK(rows, tuple(range(at)), (order,), 1), range(at + 1))


def _distinct(node: Reduce, name: str, call: AggregateCall) -> Node:
    """Return the aggregate over the distinct values of each group."""
    rows = Distinct(_values(node, name, call))
    at = len(node.keys)
    plain = AggregateCall(call.function, (at,), call.type)
    return Reduce(rows, tuple(range(at)), ((name, plain),))


def render_reduce(builder: Builder, source: int, node: Reduce) -> int:
    """Return the step of a Reduce that one operator keeps."""
    types = builder.types(source)
    if all(c.how == FAST and not c.distinct for _, c in node.aggregates):
        made = tuple(_accumulator(c, types) for _, c in node.aggregates)
        operator = ReduceOperator(types, node.keys, made, global_=not node.keys)
        layout = operator.layout
        stored = tuple(f.type for f in (*layout.key, *layout.value))
        keying = Keying(stored, tuple(range(len(layout.key))))
        state = builder.state(f"{node.fingerprint} totals", keying)
        return builder.step(accumulate.Accumulate(source, state, operator), node.fingerprint, state)
    state, keying = builder.arrange(source, node.keys)
    for_none = None
    if not node.keys:
        for_none = tuple(from_python([c.function.empty], c.type) for _, c in node.aggregates)
    result = tuple(arrow_type(c.type) for c in node.schema)
    step = groups.Groups(source, state, keying, node, result, for_none)
    return builder.step(step, node.fingerprint, state)


def _accumulator(call: AggregateCall, types: tuple[pa.DataType, ...]) -> Aggregate:
    name = call.function.name
    at = call.arguments[0] if call.arguments else None
    if name == "count":
        return Counted(at, call.filter)
    assert at is not None
    kind = types[at]
    if name == "sum":
        return sum_of(at, kind, call.filter)
    if name == "avg":
        return average_of(at, kind, call.filter, arrow_type(call.type))
    if name in {"bool_and", "bool_or"}:
        return Truth(at, name == "bool_and", call.filter)
    if name in {"stddev_samp", "stddev_pop", "var_samp", "var_pop"}:
        sample, root = name.endswith("_samp"), name.startswith("stddev")
        return Variance(at, kind, sample, root, call.filter)
    message = f"aggregate {name} has no accumulator"
    raise NotSupported(message)
