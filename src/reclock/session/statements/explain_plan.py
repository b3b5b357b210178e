"""EXPLAIN PLAN: how a view is maintained, or how a query would be answered now.

Of a view: what a change costs at each node, and which arrangement it reads: that of a
relation's own key or of an index, which is there anyway, or one that is kept for it (and
shared with every view that needs the same). A view that would be refused (``sql.cost``) is
explained too: the plan says why. Of a materialized view, too, from how many changed rows on its
ticks are Spark jobs, by what operators have cost this process so far (``dataflow.placement``).

Of a SUBSCRIBE: which object it follows, or what is kept for it as for a view. Of an index: what
it keeps, unless that is there already.

Of a query: whether it is looked up, scanned, or computed by Spark; then what is computed.

With ANALYZE a query is run too, as a client would, and its rows are counted. Of a materialized view
it says what each operator took and keeps, by what this process has measured (``session.facts``).

Tests: tests/session/test_explain.py.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from reclock.catalog.item import Index, MaterializedView, RelationItem, Table, View
from reclock.dataflow.graph import collection_of
from reclock.dataflow.render.build import key_of
from reclock.engine.leaves import leaves, leaves_of, shapes
from reclock.engine.shape import Shape
from reclock.engine.system_answer import refuse_maintained, with_rows
from reclock.engine.system_moment import Moment
from reclock.errors import StatementError
from reclock.ids import ObjectId
from reclock.rows.result import Result
from reclock.session.definition import define_index, plan_view, schedule_of
from reclock.session.facts import Facts
from reclock.session.plans import plan_once
from reclock.session.statements.select import answer
from reclock.spark import peek
from reclock.sql.explain import explain, explain_maintained
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.sql.schema import Column, Schema
from reclock.sql.statement import (
    CatalogQuery,
    CreateIndex,
    CreateMaterializedView,
    CreateView,
    SelectStatement,
    Subscribe,
)
from reclock.sql.syntax.expression import Name
from reclock.sql.types import TEXT
from reclock.subscribe.subscribers import Query
from reclock.subscribe.target import plan_target
from reclock.time.frontier import at
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Collection

    from reclock.catalog.catalog import Catalog
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import ExplainPlan
    from reclock.subscribe.target import Target
    from reclock.time.frontier import Frontier

PLAN_SCHEMA = Schema((Column("plan", TEXT, nullable=False),))


def explain_plan(context: Context, statement: ExplainPlan) -> Result:
    """Show a plan: one row, a line per node."""
    with context.core.reading() as latest:
        world = latest
        if context.transaction is not None and context.transaction.has_drafted:
            world = context.transaction.draft().seen
        text = _explained(statement.of, context, world)
        if statement.analyze and isinstance(statement.of, Name):
            text += "\n" + _measured(context, str(statement.of.parts[-1]))
    if statement.analyze and isinstance(statement.of, SelectStatement | CatalogQuery):
        text += "\n" + _run(context, statement.of)
    return Result("EXPLAIN", PLAN_SCHEMA.names, [(text,)], schema=PLAN_SCHEMA)


def _explained(  # noqa: PLR0911 - one per kind of statement
    of: (
        SelectStatement
        | CatalogQuery
        | Subscribe
        | CreateView
        | CreateMaterializedView
        | CreateIndex
        | Name
    ),
    context: Context,
    world: World,
) -> str:
    catalog = world.catalog
    match of:
        case SelectStatement():
            plan = plan_once(of.query, context.parameters, catalog)
            return _answered(plan, context, world)
        case CatalogQuery():
            read = ", ".join(f"{schema}.{name}" for schema, name in sorted(of.relations))
            return "Answered by: the catalog, without a Spark job" + (read and f"\nReads: {read}")
        case CreateView() | CreateMaterializedView():
            written, depends = plan_view(of, catalog)
            head = ""
            if isinstance(of, CreateMaterializedView):
                refuse_maintained(written, catalog.system, "a materialized view")
                head = "" if of.refresh is None else f"Refresh: {schedule_of(of.refresh)}\n"
                head += _ticks(written, depends, context, world)
            return head + _maintained(written, catalog)
        case Name():
            item = catalog.get(of, RelationItem)
            if isinstance(item, MaterializedView):
                head = _expiring(item, context, world) + _refreshed(item, world)
                ticks = _ticks(item.plan, item.depends, context, world)
                return head + ticks + _maintained(item.plan, catalog)
            if isinstance(item, View):
                return _maintained(item.plan, catalog)
            message = f'"{item.name}" is not a view'
            hint = f"it is a {item.kind}: nothing is computed for it"
            raise StatementError(message, code="42809", hint=hint, position=of.position)
        case CreateIndex():
            return _indexed(of, catalog)
        case Subscribe():
            return _followed(plan_target(of, context.parameters, catalog), context, world)


def _run(context: Context, of: SelectStatement | CatalogQuery) -> str:
    """Run a query, and say how long it took and how many rows it gave."""
    begun = perf_counter()
    found = answer(context, of)
    first, rows = None, 0
    try:
        while (batch := found.take()) is not None:
            first = perf_counter() if first is None else first
            rows += batch.num_rows
    finally:
        found.close()
    ended = perf_counter()
    said = f"Rows: {rows}\n"
    if first is not None:
        said += f"First row after: {1_000 * (first - begun):.3f} ms\n"
    return f"{said}Execution Time: {1_000 * (ended - begun):.3f} ms"


def _measured(context: Context, name: str) -> str:
    """Say what the operators of a materialized view took, and what they keep."""
    found = Facts(context.core).operators(name)
    assert found is not None
    ticks = found["ticks"].get("driver", 0)
    measured = f"{ticks} {'tick' if ticks == 1 else 'ticks'} of this process"
    if by_tasks := found["ticks"].get("spark", 0):
        measured += f", and of {by_tasks} on Spark"
    lines = [f"Operators, on average of {measured}:"]
    for one in found["operators"]:
        reads = ", ".join(map(str, one["inputs"]))
        lines.append(f"  {one['step']}: {one['operator']}" + (f" of {reads}" if reads else ""))
        millis = {place: f"{took:.4f} ms" for place, took in one["millis"].items()}
        took = f"time: {millis.get('driver', 'not measured')}"
        took += f", in tasks: {millis['spark']}" if "spark" in millis else ""
        gave = "" if one["rows"] is None else f", rows: {one['rows']:g}"
        kept = f", keeps: {one['records']} records, {one['bytes']} bytes" if one["keeps"] else ""
        lines.append(f"    | {took}{gave}{kept}")
    return "\n".join(lines)


def _expiring(item: MaterializedView, context: Context, world: World) -> str:
    """Say from when on a view keeps nothing, if it expires."""
    state = world.of(item)
    made = context.core.expirations.decision(item, state)
    own = [name for name, views in state.shape.filters.items() if item.id in views]
    untils = [u for name in own if (u := state.arrangements.untils.get(name)) is not None]
    if made.expiration.is_closed or not untils:
        return _said(made.expiration)
    return _said(at(min(untils)))


def _ticks(plan: Node, depends: Collection[ObjectId], context: Context, world: World) -> str:
    """Say where the ticks of a view run, or would run, given all that is kept now."""
    catalog = world.catalog
    timeline = plan.timeline.timeline or EPOCH_MS
    plan = rewrite(plan, RewriteContext())
    view = MaterializedView(
        ObjectId("explained"), "explained", "", timeline, frozenset(depends),
        plan=plan, key=key_of(plan),
    )  # fmt: skip
    shape = Shape.of(catalog, catalog.pace(timeline, depends), [view])
    graph = shape.graph
    steps = graph.needed([collection_of(view.id)], ())
    inputs = [i for i in (*graph.tables, *graph.sources) if graph.entry(i)[0] in steps]
    outlook = context.core.engine.outlook(shape, inputs) if inputs else None
    return "" if outlook is None else f"Ticks: {outlook}\n"


def _refreshed(item: MaterializedView, world: World) -> str:
    """Say when a view is refreshed, and next, if it is not right at every time."""
    if item.schedule is None:
        return ""
    due = item.schedule.round_up(world.of(item).upper)
    return f"Refresh: {item.schedule}; next at {'no time' if due is None else int(due)}\n"


def _followed(target: Target, context: Context, world: World) -> str:
    catalog = world.catalog
    if target.item is not None:
        return f"Followed: the changes of {catalog[target.item]}, which are kept anyway"
    kept = "Kept as long as someone is subscribed:\n"
    if target.pace is not None and target.pace in world.timelines:
        view = Query.followed(target).view(0)
        made = context.core.expirations.decision(view, world.timelines[target.pace])
        kept += _said(made.expiration)
    return kept + _maintained(target.plan, catalog)


def _said(expiration: Frontier) -> str:
    if expiration.is_closed:
        return ""
    end = int(expiration.element())
    return f"Expiration: {end}; updates at that time and later are not stored\n"


def _indexed(statement: CreateIndex, catalog: Catalog) -> str:
    index = define_index(statement, "", catalog)
    on = catalog[index.on]
    assert isinstance(on, RelationItem)
    by = ", ".join(on.schema[k].name for k in index.key)
    if index.plan is not None:
        return f"Index of {on} by ({by}), which keeps its rows:\n{_maintained(index.plan, catalog)}"
    there = _arrangement(catalog, index.on, index.key)
    keeps = f"keeps {on.name} arranged by ({by})" if there is None else f"uses {there} by ({by})"
    return f"Index of {on} by ({by})\n  cost: the changed rows\n  {keeps}"


def _answered(plan: QueryPlan, context: Context, world: World) -> str:
    timeline = plan.root.timeline.timeline
    shape, traces = shapes(world, plan)
    uppers = [world.of(item).upper for item in leaves(world, plan)]
    as_of = min(uppers).back() if uppers else Timestamp(0)
    shown = with_rows(
        plan,
        world.catalog.system,
        lambda: Moment.of(context.core, world, timeline, as_of, context.session.role),
    )
    way = peek.way(shown, {} if shape is None else leaves_of(shown, shape, traces, as_of))
    return f"Answered by: {way}\n{explain(plan)}"


def _maintained(plan: Node, catalog: Catalog) -> str:
    """Explain the plan of a view, materialized or as it would be."""
    return explain_maintained(rewrite(plan, RewriteContext()), partial(_arrangement, catalog))


def _arrangement(catalog: Catalog, item: ObjectId, columns: tuple[int, ...]) -> str | None:
    """Return what keeps a relation arranged by these columns, if something does."""
    relation = catalog.items.get(item)
    if isinstance(relation, Table | MaterializedView) and relation.key == columns:
        return str(relation)
    indexes = (i for i in catalog.of_kind(Index) if i.on == item and i.key == columns)
    return next((f"{index} of {relation}" for index in indexes), None)
