"""Drop unread columns: outputs of projections, aggregates, window functions.

First every node learns, from all of the nodes that read it, which of its columns are
needed; then the plan is rebuilt from the leaves with those. A shared part stays shared.
The columns of a catalog item are left whole, so that its arrangements stay shared between
views. Ties in top-k and windows are broken by all columns, so these need all of their
input. Cost: linear in the plan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.sql.plan.decorrelate import scalars_of
from reclock.sql.plan.relation import (
    Filter,
    FlatMap,
    Join,
    JoinKind,
    Project,
    Reduce,
    Union,
    Window,
    keep,
    walk,
    with_inputs,
)
from reclock.sql.plan.scalar import columns_of, moved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.sql.plan.node import Node, SortKey

Kept = tuple[int, ...]
Pruned = tuple["Node", Kept]
Needed = set[int]


def prune_columns(node: Node) -> Node:
    """Return ``node`` with the same columns, and nothing below it that they do not need."""
    order = list(walk(node))
    needed: dict[Node, Needed] = {n: set() for n in order}
    needed[node] = set(range(node.width))
    for at in reversed(order):
        for child, columns in zip(at.inputs, _needs(at, needed[at]), strict=True):
            needed[child] |= columns
    done: dict[Node, Pruned] = {}
    for at in order:
        done[at] = _rebuilt(at, needed[at], [done[i] for i in at.inputs])
    made, kept = done[node]
    return keep(made, _places(range(node.width), kept))


def _calls(node: Reduce, needed: Needed) -> list[int]:
    return [i for i in range(len(node.aggregates)) if len(node.keys) + i in needed]


def _needs(node: Node, needed: Needed) -> list[Needed]:  # noqa: PLR0911  # one per case
    """Return which columns of each input ``node`` reads to give ``needed``."""
    match node:
        case Project():
            return [{c for i in needed for c in columns_of(node.outputs[i][1])}]
        case Filter():
            return [needed | {c for p in node.predicates for c in columns_of(p)}]
        case FlatMap():
            return [{c for c in needed if c < node.input.width} | columns_of(node.array)]
        case Join():
            width = node.left.width
            used = needed | {c for s in scalars_of(node) for c in columns_of(s)}
            left = {c for c in used if c < width} | {p.left for p in node.on}
            right = {c - width for c in used if c >= width} | {p.right for p in node.on}
            return [left, right]
        case Reduce():
            columns = set(node.keys)
            for i in _calls(node, needed):
                call = node.aggregates[i][1]
                columns |= {*call.arguments, *(k.column for k in call.order)}
                columns |= set() if call.filter is None else {call.filter}
            return [columns]
        case Union():
            return [set(needed) for _ in node.members]
    return [set(range(i.width)) for i in node.inputs]


def _place(kept: Kept) -> dict[int, int]:
    return {old: new for new, old in enumerate(kept)}


def _places(columns: Iterable[int], kept: Kept) -> tuple[int, ...]:
    place = _place(kept)
    return tuple(place[c] for c in columns)


def _rebuilt(node: Node, needed: Needed, inputs: list[Pruned]) -> Pruned:  # noqa: PLR0911  # one per case
    """Return ``node`` over its pruned inputs, and which of its old columns are left."""
    match node:
        case Project():
            return _project(node, needed, inputs[0])
        case Filter():
            below, kept = inputs[0]
            place = _place(kept)
            predicates = tuple(moved(p, lambda c: place[c]) for p in node.predicates)
            return Filter(below, predicates), kept
        case FlatMap():
            below, kept = inputs[0]
            place = _place(kept)
            array = moved(node.array, lambda c: place[c])
            return replace(node, input=below, array=array), (
                *kept,
                *range(node.input.width, node.width),
            )
        case Join():
            return _join(node, inputs[0], inputs[1])
        case Reduce():
            return _reduce(node, needed, inputs[0])
        case Union():
            kept = tuple(sorted(needed))
            return Union(tuple(keep(m, _places(kept, k)) for m, k in inputs)), kept
        case Window():
            return _window(node, needed, inputs[0])
    whole = tuple(keep(m, _places(range(i.width), k)) for i, (m, k) in zip(
        node.inputs, inputs, strict=True))  # fmt: skip
    made = node if whole == node.inputs else with_inputs(node, whole)
    return made, tuple(range(node.width))


def _project(node: Project, needed: Needed, below: Pruned) -> Pruned:
    kept = tuple(sorted(needed))
    place = _place(below[1])
    outputs = (node.outputs[i] for i in kept)
    return Project(below[0], tuple((n, moved(s, lambda c: place[c])) for n, s in outputs)), kept


def _join(node: Join, left: Pruned, right: Pruned) -> Pruned:
    width = node.left.width
    lefts, rights = _place(left[1]), _place(right[1])

    def to(c: int) -> int:
        return lefts[c] if c < width else len(lefts) + rights[c - width]

    on = tuple(replace(p, left=lefts[p.left], right=rights[p.right]) for p in node.on)
    residual = tuple(moved(p, to) for p in node.residual)
    made = Join(node.kind, left[0], right[0], on, residual)
    if node.kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return made, left[1]
    return made, (*left[1], *(c + width for c in right[1]))


def _order(order: tuple[SortKey, ...], place: dict[int, int]) -> tuple[SortKey, ...]:
    return tuple(replace(k, column=place[k.column]) for k in order)


def _reduce(node: Reduce, needed: Needed, below: Pruned) -> Pruned:
    place = _place(below[1])
    chosen = _calls(node, needed)
    aggregates = tuple(
        (
            name,
            replace(
                call,
                arguments=tuple(place[a] for a in call.arguments),
                filter=None if call.filter is None else place[call.filter],
                order=_order(call.order, place),
            ),
        )
        for name, call in (node.aggregates[i] for i in chosen)
    )
    made = Reduce(below[0], tuple(place[k] for k in node.keys), aggregates)
    count = len(node.keys)
    return made, (*range(count), *(count + i for i in chosen))


def _window(node: Window, needed: Needed, below: Pruned) -> Pruned:
    width = node.input.width
    source = keep(below[0], _places(range(width), below[1]))
    kept = (*range(width), *(c for c in range(width, node.width) if c in needed))
    calls = tuple(node.calls[c - width] for c in kept[width:])
    return (replace(node, input=source, calls=calls) if calls else source), kept
