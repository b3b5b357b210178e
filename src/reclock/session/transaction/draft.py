"""Drafts: the effects of a transaction so far, as a value that its next statement sees.

A draft is a catalog with the transaction's objects, roles, and the changes of rows, in order. It is
never changed: a statement gives the next draft, a savepoint keeps one. Nothing of it is durable.

``seen`` is the world that queries read. There

- a table that was written has one more run, with the transaction's rows, as a sibling of the first:
  whatever reads the table at any time reads these too;
- a table that was made has only that run;
- what is kept over such tables is not right in there, so a view over them, materialized or not, is
  its query, and their indexes are left out. A view that is refreshed on a schedule stays as it is.

New objects have the ids that they would get if nothing else happened; ``transaction`` makes the
draft again, over the world as it then is, before anything is published.

Cost: of a read, the rows of the tables that it reads and that the transaction has written.
Tests: tests/session/test_draft.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from reclock.arrangement.segment import SegmentWriter
from reclock.catalog.catalog import Catalog
from reclock.catalog.item import Index, MaterializedView, Table, View
from reclock.dataflow.graph import collection_of
from reclock.engine.arrangements import Arrangements, beginning
from reclock.engine.read import Readable, check_errors
from reclock.engine.replacement import roots
from reclock.engine.shape import Shape
from reclock.engine.timeline import TimelineState
from reclock.engine.write import updates_of
from reclock.engine.write_log import Wal
from reclock.sql.plan.relation import Get, empty, transform
from reclock.time.frontier import at
from reclock.time.oracle import OracleState
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.catalog.item import Item
    from reclock.catalog.roles import Roles
    from reclock.engine.core import Core
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.world import World
    from reclock.engine.write import Change
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan

_INLINE: Final = 1 << 40
"""Rows of a transaction are never in a file: they are in memory anyway."""


@dataclass(frozen=True)
class Draft:
    """A world, the time at which it is read, and what a transaction has done to it."""

    core: Core
    base: World
    timestamp: Timestamp
    catalog: Catalog
    """Objects as they are defined."""
    roles: Roles
    changes: tuple[Change, ...] = ()
    edits: int = 0
    """How many versions of the catalog there are between that of the base and this."""
    made: frozenset[ObjectId] = field(default=frozenset())
    """Objects that the base does not have."""

    @classmethod
    def of(cls, core: Core, world: World, timestamp: Timestamp) -> Draft:
        """Return a draft in which nothing has been done."""
        return cls(core, world, timestamp, world.catalog, world.roles)

    def written(self, change: Change) -> Draft:
        """Return the draft after a change of rows."""
        return replace(self, changes=(*self.changes, change))

    def edited(
        self, added: Iterable[Item], removed: Iterable[ObjectId] = (), roles: Roles | None = None
    ) -> Draft:
        """Return the draft after objects have come and gone; each makes a version."""
        made, gone = tuple(added), tuple(removed)
        catalog = self.catalog.changed(made, gone)
        new = self.made | {item.id for item in made if item.id not in self.base.catalog.items}
        return replace(
            self,
            catalog=catalog,
            roles=self.roles if roles is None else roles,
            edits=self.edits + int(catalog.version) - int(self.catalog.version),
            made=new - set(gone),
            changes=tuple(c for c in self.changes if c.table.id not in set(gone)),
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been done."""
        return not self.changes and not self.edits

    # What is read.

    @cached_property
    def shown(self) -> World:
        """The world with the objects as they are defined: what there is to know of them."""
        if not self.edits:
            return self.base
        return replace(self.base, catalog=self.catalog, roles=self.roles)

    @cached_property
    def _touched(self) -> frozenset[ObjectId]:
        """The tables that are not what the base has, and all that is defined by them."""
        tables = {change.table.id for change in self.changes} | self.made | self._replaced
        return frozenset(tables) | self.catalog.dependents(tables)

    @cached_property
    def _replaced(self) -> frozenset[ObjectId]:
        """The views that have another query than in the base."""
        return roots(self.base.catalog, self.catalog)

    @cached_property
    def read_catalog(self) -> Catalog:
        """The catalog that queries are planned with: nothing that is kept is not right."""
        if self.is_empty:
            return self.catalog
        items: dict[ObjectId, Item] = {}
        plans: dict[ObjectId, Node] = {}

        def inlined(node: Node) -> Node:
            return plans.get(node.item, node) if isinstance(node, Get) else node

        for name, item in self.catalog.items.items():
            if name not in self._touched:
                items[name] = item
                continue
            match item:
                case Index():
                    continue
                case MaterializedView() if item.schedule is not None and name not in self.made:
                    items[name] = item
                case MaterializedView() | View():
                    plan = plans[name] = transform(item.plan, inlined)
                    items[name] = View(
                        name, item.name, item.sql, item.timeline, item.depends,
                        plan=plan, owner=item.owner,
                    )  # fmt: skip
                case _:
                    items[name] = item
        return replace(self.catalog, items=items, whole=self.catalog)

    @cached_property
    def seen(self) -> World:
        """The world that queries read."""
        if self.is_empty:
            return self.base
        tables = [self.catalog[i] for i in self._touched]
        drafted = {t.id: self._state(t) for t in tables if isinstance(t, Table)}
        return replace(self.base, catalog=self.read_catalog, roles=self.roles, drafted=drafted)

    def _state(self, table: Table) -> TimelineState:
        """Return what is read of a table that was written, or made."""
        pace = self.catalog.paces[table.id]
        known = self.base.timelines.get(pace)
        name = collection_of(table.id)
        upper = self.timestamp.step()
        since = at(0)
        refs: tuple[RunRef, ...] = ()
        if table.id not in self.made:
            assert known is not None
            refs, upper = known.arrangements.runs[name], known.upper
            since = known.sinces[table.id]
        own = self._run(table, refs)
        arrangements = Arrangements(
            None,  # type: ignore[arg-type] # it is in no manifest
            {name: (*refs[:1], *own, *refs[1:])},
            own=upper,
        )
        shape = Shape.of(Catalog(0, {table.id: table}), pace)
        return TimelineState(
            pace, OracleState(), Wal.without_tables(), arrangements, shape, self.core.segments,
            sinces={table.id: since},
        )  # fmt: skip

    def _run(self, table: Table, refs: tuple[RunRef, ...]) -> tuple[RunRef, ...]:
        """Return the rows of the transaction as a run; none if there is nothing and need not be."""
        changes = [change for change in self.changes if change.table.id == table.id]
        if not changes and refs:
            return ()
        description = (
            refs[0].description if refs else replace(beginning(self.timestamp.step()), since=at(0))
        )
        batches = [batch for _, batch in updates_of(changes, Timestamp(0))]
        with SegmentWriter(self.core.segments, "draft", inline_limit=_INLINE) as writer:
            writer.add(str(table.id), table.keying.layout, batches, description)
            return writer.finish()

    # Planning and answering.

    def on_base(self, plan: QueryPlan) -> QueryPlan:
        """Return a plan that reads of the base what another one does; what was made has no rows."""
        if not self.made:
            return plan

        def emptied(node: Node) -> Node:
            return empty(node.schema) if isinstance(node, Get) and node.item in self.made else node

        return replace(plan, root=transform(plan.root, emptied))

    def answer(
        self,
        plan_of: Callable[[Catalog], QueryPlan],
        role: str | None,
        interrupt: Interrupt,
    ) -> pa.Table:
        """Answer a query."""
        plan = plan_of(self.read_catalog)
        check_errors(self.seen, plan, self.timestamp)
        return Readable(plan, self.seen, self.timestamp, role).peek(self.core, interrupt)


def removed_and_added(
    before: Catalog, after: Catalog
) -> tuple[Mapping[ObjectId, Item], frozenset[ObjectId]]:
    """Return the objects that only the second catalog has, or has otherwise; and what is gone."""
    added = {i: item for i, item in after.items.items() if before.items.get(i) is not item}
    return added, frozenset(before.items.keys() - after.items.keys())
