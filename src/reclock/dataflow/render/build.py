"""The graph of all objects of a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reclock.dataflow.error_rows import ERROR_TYPES
from reclock.dataflow.render.builder import Builder
from reclock.dataflow.render.nodes import render
from reclock.dataflow.render.source import Source, render_source
from reclock.dataflow.steps.leaf import Input
from reclock.dataflow.steps.refresh import Refresh
from reclock.dataflow.types import arrow_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.sql.schema import Schema
    from reclock.time.refresh import Schedule

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Relation:
    """An object that is written from outside: its columns, and the key it is arranged by."""

    schema: Schema
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """An object that is computed: its plan, the key its rows are arranged by, and when."""

    plan: Node
    key: tuple[int, ...]
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """The collection of another object, arranged by other columns."""

    on: ObjectId
    key: tuple[int, ...]


def build_graph(
    tables: Mapping[ObjectId, Relation],
    views: Mapping[ObjectId, View],
    indexes: Mapping[K, Index],
    sources: Mapping[ObjectId, Source] | None = None,
) -> tuple[Graph, dict[K, ArrangementId]]:
    """Return the graph, and the arrangement of each index, whatever it is called.

    ``views`` come in an order in which each is after those it reads.
    """
    builder = Builder()
    for item, table in tables.items():
        step = builder.step(Input(item, arrow_types(table.schema)), f"table {item}")
        builder.table(item, step, table.key)
    for item, source in (sources or {}).items():
        render_source(builder, item, source)
    found: dict[K, ArrangementId] = {}
    for item, view in views.items():
        rows = render(builder, view.plan)
        if view.schedule is not None:
            rows = _refreshed(builder, item, rows, view.schedule)
        builder.view(item, rows, view.key)
    for name, index in indexes.items():
        found[name] = builder.index(builder.reference(index.on), index.key)
    return builder.graph(), found


def _refreshed(builder: Builder, item: ObjectId, rows: int, schedule: Schedule) -> int:
    """Return the step that shows the rows of another at the times of a schedule."""
    types = builder.types(rows)
    name = f"refresh {item}"
    pending, keying = builder.pending(name, (*types, *ERROR_TYPES))
    return builder.delayed(Refresh(rows, pending, schedule, types, keying), name, pending)


def key_of(node: Node) -> tuple[int, ...]:
    """Return the columns to arrange a view by: its smallest unique key, else all of them."""
    keys = sorted(node.unique_keys, key=lambda k: (len(k), sorted(k)))
    return tuple(sorted(keys[0])) if keys else tuple(range(node.width))
