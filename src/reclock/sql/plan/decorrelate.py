"""Removing references to outer rows: dependent joins over the distinct outer keys.

Let ``inner`` read the columns u of each row of ``outer``. Then with K = distinct(outer.u),
push(inner, K) has the columns ``K ++ inner`` and holds, for every k in K, the rows that
``inner`` has when u = k. It is built from the leaves up: a part that reads nothing of
``outer`` is joined with K; row-wise nodes replace references by K's columns; grouping,
distinct, top-k and windows group by K as well; a group without keys exists for every k
(left join from K, with the aggregates' empty values). Finally ``outer`` joins the result on
u, NULL matching NULL. Any predicate may relate inner and outer rows.

Where ``inner`` is only a filtered, projected relation that itself reads nothing of
``outer``, the dependent join is an ordinary join with the filter as its condition.

Cost: K is one row per distinct combination of the outer columns that are read; everything
stays incremental. Examples: tests/sql/test_decorrelate.py; at random: tests/net/test_net.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.sql.plan.relation import (
    AggregateCall,
    Constant,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    JoinKind,
    KeyPair,
    Project,
    Reduce,
    SortKey,
    TopK,
    Union,
    Window,
    WindowCall,
    column,
    keep,
    transform,
    walk,
    with_inputs,
)
from reclock.sql.plan.scalar import (
    Coalesce,
    ColumnRef,
    Literal,
    OuterRef,
    can_fail,
    shifted,
    substituted,
)
from reclock.sql.plan.scalar import transform as transform_scalar
from reclock.sql.plan.scalar import walk as walk_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.schema import Schema


def scalars_of(node: Node) -> tuple[Scalar, ...]:
    """Return the scalar expressions that ``node`` itself holds."""
    match node:
        case Project():
            return tuple(s for _, s in node.outputs)
        case Filter():
            return node.predicates
        case FlatMap():
            return (node.array,)
        case Join():
            return node.residual
    return ()


def with_scalars(node: Node, change: Callable[[Scalar], Scalar]) -> Node:
    """Return ``node`` with ``change`` applied to each expression it holds."""
    match node:
        case Project():
            return replace(node, outputs=tuple((n, change(s)) for n, s in node.outputs))
        case Filter():
            return replace(node, predicates=tuple(change(p) for p in node.predicates))
        case FlatMap():
            return replace(node, array=change(node.array))
        case Join():
            return replace(node, residual=tuple(change(p) for p in node.residual))
    return node


def outer_refs(node: Node) -> Iterator[OuterRef]:
    """Yield every reference to an enclosing query's row, anywhere in ``node``."""
    for at in walk(node):
        for scalar in scalars_of(at):
            yield from (s for s in walk_scalar(scalar) if isinstance(s, OuterRef))


def reads_outer(node: Node) -> bool:
    """Return whether ``node`` reads the row of the next enclosing query."""
    return any(ref.depth == 1 for ref in outer_refs(node))


def redepth(node: Node, by: int) -> Node:
    """Return ``node`` with its enclosing queries ``by`` levels further out."""
    if not any(True for _ in outer_refs(node)):
        return node

    def change(scalar: Scalar) -> Scalar:
        return transform_scalar(
            scalar,
            lambda s: replace(s, depth=s.depth + by) if isinstance(s, OuterRef) else s,
        )

    return transform(node, lambda n: with_scalars(n, change))


def apply(outer: Node, inner: Node, kind: JoinKind) -> Node:
    """Join every row of ``outer`` with the rows that ``inner`` has for it.

    Columns are ``outer ++ inner``, or those of ``outer`` for semi and anti joins.
    """
    if not reads_outer(inner):
        return Join(kind, outer, redepth(inner, -1))
    simple = _as_join(outer, inner, kind)
    if simple is not None:
        return simple
    used = tuple(sorted({ref.index for ref in outer_refs(inner) if ref.depth == 1}))
    keys = Distinct(keep(outer, used))
    pushed = _Push(keys, used).push(inner)
    on = tuple(
        KeyPair(index, at, null_safe=outer.schema[index].nullable) for at, index in enumerate(used)
    )
    joined = Join(kind, outer, pushed, on)
    if kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return joined
    inners = range(outer.width + len(used), joined.width)
    return keep(joined, (*range(outer.width), *inners))


def _as_join(outer: Node, inner: Node, kind: JoinKind) -> Node | None:
    """Return the ordinary join that a filtered relation makes, if it is one."""
    half = kind in {JoinKind.SEMI, JoinKind.ANTI}
    outputs: tuple[tuple[str, Scalar], ...] | None = None
    at = inner
    while isinstance(at, Project):
        if half:
            pass
        elif outputs is None:
            outputs = at.outputs
        else:
            below = tuple(s for _, s in at.outputs)
            outputs = tuple((n, substituted(s, below)) for n, s in outputs)
        at = at.input
    predicates: tuple[Scalar, ...] = ()
    while isinstance(at, Filter):
        predicates = at.predicates + predicates
        at = at.input
    if reads_outer(at):
        return None
    outputs = outputs or tuple((c.name, column(at, i)) for i, c in enumerate(at.schema))
    plain = all(isinstance(s, ColumnRef) for _, s in outputs)
    if not half and not plain:
        if kind is not JoinKind.INNER and any(
            can_fail(s) or any(isinstance(p, OuterRef) for p in walk_scalar(s)) for _, s in outputs
        ):
            return None
        if kind is not JoinKind.INNER:
            width = at.width
            kept = tuple((c.name, column(at, i)) for i, c in enumerate(at.schema))
            at = Project(at, (*kept, *outputs))
            outputs = tuple((n, column(at, width + i)) for i, (n, _) in enumerate(outputs))
    right = redepth(at, -1)

    def change(scalar: Scalar) -> Scalar:
        return transform_scalar(shifted(scalar, outer.width), _to_left)

    joined = Join(kind, outer, right, (), tuple(change(p) for p in predicates))
    if half:
        return joined
    lefts = tuple((c.name, column(joined, i)) for i, c in enumerate(outer.schema))
    rights = tuple((n, _refreshed(change(s), joined.schema)) for n, s in outputs)
    return Project(joined, (*lefts, *rights))


def _to_left(scalar: Scalar) -> Scalar:
    if not isinstance(scalar, OuterRef):
        return scalar
    if scalar.depth == 1:
        return ColumnRef(scalar.index, scalar.type, scalar.nullable, scalar.name)
    return replace(scalar, depth=scalar.depth - 1)


def _refreshed(scalar: Scalar, schema: Schema) -> Scalar:
    """Give column references the nullability they have in ``schema``."""

    def change(part: Scalar) -> Scalar:
        if isinstance(part, ColumnRef):
            return replace(part, nullable=schema[part.index].nullable)
        return part

    return transform_scalar(scalar, change)


class _Push:
    """Builds ``K ++ node`` for every node below a dependent join."""

    def __init__(self, keys: Node, used: tuple[int, ...]) -> None:
        self._keys = keys
        self._place = {index: at for at, index in enumerate(used)}
        self._width = len(used)
        self._done: dict[Node, Node] = {}

    def push(self, node: Node) -> Node:
        made = self._done.get(node)
        if made is None:
            made = self._done[node] = self._push(node)
        return made

    def _push(self, node: Node) -> Node:  # noqa: PLR0911  # one per case
        if not reads_outer(node):
            return Join(JoinKind.INNER, self._keys, redepth(node, -1))
        match node:
            case Project():
                below = self.push(node.input)
                outputs = tuple((n, self._scalar(s, below.schema)) for n, s in node.outputs)
                return Project(below, (*self._key_outputs(below), *outputs))
            case Filter():
                below = self.push(node.input)
                return Filter(below, tuple(self._scalar(p, below.schema) for p in node.predicates))
            case FlatMap():
                below = self.push(node.input)
                return replace(node, input=below, array=self._scalar(node.array, below.schema))
            case Join():
                return self._join(node)
            case Reduce():
                return self._reduce(node)
            case TopK():
                group = (*range(self._width), *self._columns(node.group))
                return replace(
                    node, input=self.push(node.input), group=group, order=self._order(node.order)
                )
            case Window():
                return self._window(node)
            case Union():
                return Union(tuple(self.push(m) for m in node.members))
            case Get() | Constant():
                return node
        return with_inputs(node, (self.push(node.inputs[0]),))

    def _columns(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(c + self._width for c in columns)

    def _order(self, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
        return tuple(replace(k, column=k.column + self._width) for k in order)

    def _key_outputs(self, node: Node) -> tuple[tuple[str, Scalar], ...]:
        return tuple((node.schema[i].name, column(node, i)) for i in range(self._width))

    def _to_key(self, scalar: Scalar) -> Scalar:
        if isinstance(scalar, OuterRef):
            if scalar.depth == 1:
                return column(self._keys, self._place[scalar.index])
            return replace(scalar, depth=scalar.depth - 1)
        return scalar

    def _scalar(self, scalar: Scalar, schema: Schema) -> Scalar:
        made = transform_scalar(shifted(scalar, self._width), self._to_key)
        return _refreshed(made, schema)

    def _call(self, call: AggregateCall) -> AggregateCall:
        return replace(
            call,
            arguments=self._columns(call.arguments),
            filter=None if call.filter is None else call.filter + self._width,
            order=self._order(call.order),
        )

    def _reduce(self, node: Reduce) -> Node:
        keys = (*range(self._width), *self._columns(node.keys))
        aggregates = tuple((n, self._call(c)) for n, c in node.aggregates)
        made = Reduce(self.push(node.input), keys, aggregates)
        if node.keys:
            return made
        on = tuple(KeyPair(i, i, null_safe=True) for i in range(self._width))
        joined = Join(JoinKind.LEFT, self._keys, made, on)
        outputs: list[tuple[str, Scalar]] = list(self._key_outputs(joined))
        for at, (name, call) in enumerate(node.aggregates):
            value: Scalar = column(joined, 2 * self._width + at)
            if call.function.empty is not None:
                value = Coalesce((value, Literal(call.function.empty, call.type)))
            outputs.append((name, value))
        return Project(joined, tuple(outputs))

    def _window(self, node: Window) -> Node:
        partition = (*range(self._width), *self._columns(node.partition))
        calls = tuple((n, self._window_call(c)) for n, c in node.calls)
        return Window(self.push(node.input), partition, self._order(node.order), calls)

    def _window_call(self, call: WindowCall) -> WindowCall:
        return replace(
            call,
            arguments=self._columns(call.arguments),
            filter=None if call.filter is None else call.filter + self._width,
        )

    def _join(self, node: Join) -> Node:
        width, left_width = self._width, node.left.width
        if not reads_outer(node.right) and node.kind is not JoinKind.FULL:
            on = tuple(replace(p, left=p.left + width) for p in node.on)
            left, right = self.push(node.left), redepth(node.right, -1)
            both = left.schema + right.schema
            residual = tuple(self._scalar(p, both) for p in node.residual)
            return Join(node.kind, left, right, on, residual)
        left, right = self.push(node.left), self.push(node.right)
        pairs = tuple(KeyPair(i, i, null_safe=True) for i in range(width))
        pairs += tuple(replace(p, left=p.left + width, right=p.right + width) for p in node.on)

        def change(scalar: Scalar) -> Scalar:
            """Left columns move past K, right ones past both copies of K."""
            by = width

            def place(part: Scalar) -> Scalar:
                if isinstance(part, ColumnRef):
                    extra = by if part.index < left_width else 2 * by
                    return replace(part, index=part.index + extra)
                return part

            placed = transform_scalar(transform_scalar(scalar, place), self._to_key)
            return _refreshed(placed, left.schema + right.schema)

        residual = tuple(change(p) for p in node.residual)
        joined = Join(node.kind, left, right, pairs, residual)
        if node.kind in {JoinKind.SEMI, JoinKind.ANTI}:
            return joined
        second = width + left_width
        outputs: list[tuple[str, Scalar]] = []
        for at in range(width):
            key: Scalar = column(joined, at)
            if node.kind is JoinKind.FULL:
                key = Coalesce((key, column(joined, second + at)))
            outputs.append((joined.schema[at].name, key))
        rest = (*range(width, second), *range(second + width, joined.width))
        outputs += [(joined.schema[i].name, column(joined, i)) for i in rest]
        return Project(joined, tuple(outputs))
