"""Drop what nobody reads: outputs of projections, aggregates, window functions.

The columns of a catalog item are left whole, so that its arrangements stay shared between
views; a projection narrows what a node above it has to keep.
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
    TopK,
    Union,
    Window,
    keep,
    with_inputs,
)
from reclock.sql.plan.scalar import columns_of, moved

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.sql.plan.node import Node, SortKey

Kept = tuple[int, ...]


def prune_columns(node: Node) -> Node:
    """Return ``node`` with the same columns, and nothing below it that they do not need."""
    made, kept = _prune(node, frozenset(range(node.width)))
    return keep(made, _places(range(node.width), kept))


def _places(columns: Iterable[int], kept: Kept) -> tuple[int, ...]:
    place = {old: new for new, old in enumerate(kept)}
    return tuple(place[c] for c in columns)


def _whole(node: Node) -> tuple[Node, Kept]:
    """Prune below ``node``, which itself needs all of its inputs' columns."""
    inputs = tuple(prune_columns(i) for i in node.inputs)
    made = node if inputs == node.inputs else with_inputs(node, inputs)
    return made, tuple(range(node.width))


def _prune(node: Node, needed: frozenset[int]) -> tuple[Node, Kept]:
    """Return ``node`` with fewer columns, and which of the old ones they are."""
    match node:
        case Project():
            return _project(node, needed)
        case Filter():
            used = frozenset(c for p in node.predicates for c in columns_of(p))
            below, kept = _prune(node.input, needed | used)
            place = {old: new for new, old in enumerate(kept)}
            predicates = tuple(moved(p, lambda c: place[c]) for p in node.predicates)
            return Filter(below, predicates), kept
        case FlatMap():
            return _flat_map(node, needed)
        case Join():
            return _join(node, needed)
        case Reduce():
            return _reduce(node, needed)
        case TopK():
            return _top_k(node, needed)
        case Window():
            return _window(node, needed)
        case Union():
            return _union(node, needed)
    return _whole(node)


def _project(node: Project, needed: frozenset[int]) -> tuple[Node, Kept]:
    kept = tuple(sorted(needed))
    outputs = [node.outputs[i] for i in kept]
    used = frozenset(c for _, s in outputs for c in columns_of(s))
    below, below_kept = _prune(node.input, used)
    place = {old: new for new, old in enumerate(below_kept)}
    renumbered = tuple((n, moved(s, lambda c: place[c])) for n, s in outputs)
    return Project(below, renumbered), kept


def _flat_map(node: FlatMap, needed: frozenset[int]) -> tuple[Node, Kept]:
    width = node.input.width
    used = frozenset(c for c in needed if c < width) | columns_of(node.array)
    below, kept = _prune(node.input, used)
    place = {old: new for new, old in enumerate(kept)}
    made = replace(node, input=below, array=moved(node.array, lambda c: place[c]))
    return made, (*kept, *range(width, node.width))


def _join(node: Join, needed: frozenset[int]) -> tuple[Node, Kept]:
    width = node.left.width
    used = needed | {c for s in scalars_of(node) for c in columns_of(s)}
    lefts = {c for c in used if c < width} | {p.left for p in node.on}
    rights = {c - width for c in used if c >= width} | {p.right for p in node.on}
    left, left_kept = _prune(node.left, frozenset(lefts))
    right, right_kept = _prune(node.right, frozenset(rights))
    left_place = {old: new for new, old in enumerate(left_kept)}
    right_place = {old: new for new, old in enumerate(right_kept)}

    def to(c: int) -> int:
        return left_place[c] if c < width else len(left_kept) + right_place[c - width]

    on = tuple(replace(p, left=left_place[p.left], right=right_place[p.right]) for p in node.on)
    residual = tuple(moved(p, to) for p in node.residual)
    made = Join(node.kind, left, right, on, residual)
    if node.kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return made, left_kept
    return made, (*left_kept, *(c + width for c in right_kept))


def _order(order: tuple[SortKey, ...], place: dict[int, int]) -> tuple[SortKey, ...]:
    return tuple(replace(k, column=place[k.column]) for k in order)


def _reduce(node: Reduce, needed: frozenset[int]) -> tuple[Node, Kept]:
    count = len(node.keys)
    kept = (*range(count), *(c for c in range(count, node.width) if c in needed))
    calls = [node.aggregates[c - count] for c in kept[count:]]
    used = set(node.keys)
    for _, call in calls:
        used |= {*call.arguments, *(k.column for k in call.order)}
        used |= set() if call.filter is None else {call.filter}
    below, below_kept = _prune(node.input, frozenset(used))
    below = keep(below, _places(sorted(used), below_kept))
    place = {old: new for new, old in enumerate(sorted(used))}
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
        for name, call in calls
    )
    return Reduce(below, tuple(place[k] for k in node.keys), aggregates), kept


def _top_k(node: TopK, needed: frozenset[int]) -> tuple[Node, Kept]:
    """Ties are broken by all columns, so a top-k needs what it has."""
    if node.limit is not None or node.offset:
        return _whole(node)
    return _prune(node.input, needed)


def _window(node: Window, needed: frozenset[int]) -> tuple[Node, Kept]:
    """Ties are broken by all columns of the input; only calls can be dropped."""
    width = node.input.width
    below = prune_columns(node.input)
    kept = (*range(width), *(c for c in range(width, node.width) if c in needed))
    calls = tuple(node.calls[c - width] for c in kept[width:])
    if not calls:
        return below, kept
    return replace(node, input=below, calls=calls), kept


def _union(node: Union, needed: frozenset[int]) -> tuple[Node, Kept]:
    kept = tuple(sorted(needed))
    members = []
    for member in node.members:
        made, member_kept = _prune(member, needed)
        members.append(keep(made, _places(kept, member_kept)))
    return Union(tuple(members)), kept
