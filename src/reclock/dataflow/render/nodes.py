"""Renders plan nodes as steps.

Chains of Project and Filter become one Linear step, or one Temporal step if a filter depends
on ``mz_now()``, with a Linear one above it for what can fail. Everything else is one step, or a few
with the arrangements they look up; aggregates are divided first (``reduce``). Plans come
here with only inner joins left (``sql.rewrite.lower_joins``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from reclock.dataflow.operators.join import Join as JoinOperator
from reclock.dataflow.operators.minmax import stages_of, tournament
from reclock.dataflow.operators.topk import TopK as TopKOperator
from reclock.dataflow.ordering import OrderBy
from reclock.dataflow.render.reduce import divided, render_reduce
from reclock.dataflow.steps import (
    accumulate,
    groups,
    leaf,
    linear,
    multiset,
    stateful,
    temporal,
)
from reclock.dataflow.types import arrow_type, arrow_types
from reclock.dataflow.values import from_python
from reclock.errors import NotSupported
from reclock.sql.cost import FLAT_PLACES
from reclock.sql.plan.relation import (
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
    Negate,
    Project,
    Reduce,
    Threshold,
    TopK,
    Union,
    Window,
    column,
)
from reclock.sql.plan.scalar import ColumnRef, can_fail, moved, substituted
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.plan.temporal import reads_now, spans_of

if TYPE_CHECKING:
    from reclock.dataflow.render.builder import Builder
    from reclock.sql.plan.node import Node, SortKey
    from reclock.sql.plan.scalar import Scalar


def render(builder: Builder, node: Node) -> int:
    """Return the step that gives the rows of ``node``; plans are graphs, each part once."""
    return builder.once(node.fingerprint, lambda: _rendered(builder, node))


def _rendered(builder: Builder, node: Node) -> int:  # noqa: PLR0911 - one per kind of node
    match node:
        case Get():
            return builder.reference(node.item)
        case Constant():
            return _constant(builder, node)
        case Project() | Filter():
            return _linear(builder, node)
        case FlatMap():
            source = render(builder, node.input)
            types = arrow_types(node.schema)
            step = linear.FlatMap(source, node.array, node.ordinality, types)
            return builder.step(step, node.fingerprint)
        case Union():
            members = tuple(render(builder, m) for m in node.members)
            return builder.step(multiset.Union(members, arrow_types(node.schema)), node.fingerprint)
        case Negate():
            source = render(builder, node.input)
            return builder.step(multiset.Negate(source, arrow_types(node.schema)), node.fingerprint)
        case Distinct() | Threshold():
            return _clamp(builder, node)
        case Join():
            return _join(builder, node)
        case TopK():
            return _top_k(builder, node)
        case Window():
            return _window(builder, node)
        case Reduce():
            return _reduce(builder, node)
    message = f"{type(node).__name__} cannot be maintained"
    raise NotSupported(message)


def orders_of(keys: tuple[SortKey, ...]) -> tuple[OrderBy, ...]:
    """Return the order as operators want it."""
    return tuple(OrderBy(k.column, k.descending, k.nulls_first) for k in keys)


def _constant(builder: Builder, node: Constant) -> int:
    values = list(zip(*(row for row, _ in node.rows), strict=True)) or [()] * node.width
    columns = tuple(from_python(of, c.type) for of, c in zip(values, node.schema, strict=True))
    counts = tuple(count for _, count in node.rows)
    return builder.step(leaf.Constant(columns, counts), node.fingerprint)


def _linear(builder: Builder, node: Node) -> int:
    """Fuse a chain of filters and projections, written over the columns it begins with."""
    chain: list[Node] = []
    at = node
    while isinstance(at, Project | Filter):
        chain.append(at)
        at = at.input
    source = render(builder, at)
    here: tuple[Scalar, ...] = tuple(column(at, i) for i in range(at.width))
    filters: list[Scalar] = []
    for part in reversed(chain):
        if isinstance(part, Filter):
            filters += [substituted(p, here) for p in part.predicates]
        elif isinstance(part, Project):
            here = tuple(substituted(s, here) for _, s in part.outputs)
    return _passing(builder, source, tuple(filters), here, node.fingerprint)


def _passing(
    builder: Builder,
    source: int,
    filters: tuple[Scalar, ...],
    outputs: tuple[Scalar, ...],
    fingerprint: str,
) -> int:
    """Return the step that gives ``outputs`` of the rows that pass; both are of ``source``."""
    types = tuple(arrow_type(output.type) for output in outputs)
    if not any(map(reads_now, filters)):
        return builder.step(linear.Linear(source, filters, outputs, types), fingerprint)
    spans = spans_of([f for f in filters if reads_now(f)])
    first = next(at for at, f in enumerate(filters) if reads_now(f))
    plain = [(at, f) for at, f in enumerate(filters) if not reads_now(f)]
    before = tuple(f for at, f in plain if at < first or not can_fail(f))
    after = tuple(f for at, f in plain if at > first and can_fail(f))
    if not after and not any(map(can_fail, outputs)):
        pending, keying = builder.pending(fingerprint, types)
        step = temporal.Temporal(source, pending, before, spans, outputs, keying)
        return builder.step(step, fingerprint, pending)
    # What can fail does so only for rows that pass, while they do.
    refs = {s.index: s for o in (*after, *outputs) for s in walk_scalar(o) if _is_column(s)}
    used = sorted(refs)
    kept = tuple(refs[index] for index in used)
    moved_after = tuple(moved(f, used.index) for f in after)
    moved_outputs = tuple(moved(o, used.index) for o in outputs)
    name = f"{fingerprint} in time"
    pending, keying = builder.pending(name, tuple(arrow_type(s.type) for s in kept))
    step = temporal.Temporal(source, pending, before, spans, kept, keying)
    at = builder.step(step, name, pending)
    return builder.step(linear.Linear(at, moved_after, moved_outputs, types), fingerprint)


def _is_column(scalar: Scalar) -> TypeGuard[ColumnRef]:
    return isinstance(scalar, ColumnRef)


def _clamp(builder: Builder, node: Distinct | Threshold) -> int:
    source = render(builder, node.input)
    state, keying = builder.arrange(source, tuple(range(node.width)))
    step = stateful.Clamp(source, state, keying.types, distinct=isinstance(node, Distinct))
    return builder.step(step, node.fingerprint, state)


def _join(builder: Builder, node: Join) -> int:
    if node.kind is not JoinKind.INNER:
        message = f"{node.kind.value} join was not lowered"
        raise NotSupported(message)
    left, right = render(builder, node.left), render(builder, node.right)
    left_state, left_keying = builder.arrange(left, tuple(p.left for p in node.on))
    right_state, right_keying = builder.arrange(right, tuple(p.right for p in node.on))
    null_safe = tuple(p.null_safe for p in node.on)
    operator = JoinOperator(left_keying, right_keying, null_safe)
    step = stateful.Join(left, right, left_state, right_state, operator)
    bare = f"{node.fingerprint} pairs" if node.residual else node.fingerprint
    joined = builder.step(step, bare, left_state, right_state)
    if not node.residual:
        return joined
    rows = tuple(column(node, i) for i in range(node.width))
    return _passing(builder, joined, node.residual, rows, node.fingerprint)


def _top_k(builder: Builder, node: TopK) -> int:
    source = render(builder, node.input)
    order = orders_of(node.order)
    if node.limit is not None and node.limit + node.offset <= FLAT_PLACES:
        return tournament_steps(builder, source, node, order)
    state, keying = builder.arrange(source, node.group)
    operator = TopKOperator(keying, order, node.limit, node.offset)
    return builder.step(stateful.TopK(source, state, operator), node.fingerprint, state)


def tournament_steps(builder: Builder, source: int, node: TopK, order: tuple[OrderBy, ...]) -> int:
    """Return the last of the stages that find the first rows of each group."""
    types = arrow_types(node.schema)
    assert node.limit is not None
    bits = stages_of(node.limit + node.offset, grouped=bool(node.group))
    stages = tournament(types, node.group, order, node.limit, offset=node.offset, bits=bits)
    bucketed = accumulate.Bucketed(source, bits[0], stages[0].keying.types)
    at = builder.step(bucketed, f"{node.input.fingerprint} buckets {bits[0]}")
    for stage in stages:
        state, _ = builder.arrange(at, stage.keying.key)
        step = accumulate.Stage(at, state, stage)
        at = builder.step(step, f"{node.fingerprint} stage {stage.bits}", state)
    return at


def _window(builder: Builder, node: Window) -> int:
    source = render(builder, node.input)
    state, keying = builder.arrange(source, node.partition)
    step = groups.Groups(source, state, keying, node, arrow_types(node.schema))
    return builder.step(step, node.fingerprint, state)


def _reduce(builder: Builder, node: Reduce) -> int:
    parts = divided(node)
    if parts is not node:
        return render(builder, parts)
    return render_reduce(builder, render(builder, node.input), node)
