"""What depends on a relation that was altered: the same objects, over the relation as it is now.

Views are planned again from their texts, which mean what they meant (``seen``). A view that cannot
be planned any more, or would have other columns, needs a column that is gone: that is refused, or
with CASCADE the view goes too. If the rows of a table are written anew, it is another object, and
so is all that is kept of it: objects depend on older ones only. Readers of the old ones go on with
what they read from; sinks cannot, so a table that a sink is made of is not written anew.

Tests: tests/session/test_alter_table.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Index, MaterializedView, RelationItem, View, number_of
from reclock.catalog.seen import Seen
from reclock.catalog.serial.item import Sequence
from reclock.errors import DependentObjects, Error, NotSupported
from reclock.ids import ObjectId
from reclock.session.definition import kept_by_index, plan_view
from reclock.sql.parse import parse_statement
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.sql.statement import CreateMaterializedView, CreateView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.catalog.roles import Roles


@dataclass
class Rebuilt:
    """Objects that change, and those that go."""

    added: list[Item] = field(default_factory=list)
    removed: set[ObjectId] = field(default_factory=set)
    roles: Roles | None = None


@dataclass
class _Rebuild:
    catalog: Catalog
    old: RelationItem
    new: RelationItem
    places: Mapping[int, int]
    gone: str | None
    """The column that is dropped, for messages."""
    cascade: bool
    anew: bool
    ids: dict[ObjectId, ObjectId] = field(default_factory=dict)
    items: dict[ObjectId, Item] = field(default_factory=dict)
    dropped: set[ObjectId] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


def rebuilt(
    catalog: Catalog,
    roles: Roles,
    old: RelationItem,
    new: RelationItem,
    *,
    places: Mapping[int, int] | None = None,
    gone: str | None = None,
    cascade: bool = False,
    anew: bool = False,
    first: int = 0,
) -> Rebuilt:
    """Return what a relation, and all that depends on it, become.

    ``places`` says where columns are now that are still there; with ``anew`` the relation and what
    is kept of it get new ids, of which ``first`` are taken already.
    """
    there = dict(enumerate(range(len(old.schema)))) if places is None else places
    work = _Rebuild(catalog, old, new, there, gone, cascade, anew)
    work.ids = {old.id: new.id}
    work.items = {i: item for i, item in catalog.items.items() if i != old.id}
    work.items[new.id] = new
    changed: list[Item] = [new]
    number = int(catalog.version) + first + 1
    dependents = catalog.dependents([old.id])
    for name in [i for i in catalog.items if i in dependents]:
        item = catalog[name]
        if not isinstance(item, View | MaterializedView | Index):
            if anew or gone is not None:
                message = f"cannot alter {old} because {item} is made of it"
                hint = f"DROP the {item.kind} first, and create it again"
                raise NotSupported(message, hint=hint)
            continue
        if item.depends & work.dropped:
            work.dropped.add(name)
            continue
        target = ObjectId(f"u{number + 1}") if anew else name
        made = _remade(work, item, target)
        if made is None:
            work.dropped.add(name)
            continue
        number += anew
        work.ids[name] = made.id
        work.items.pop(name, None)
        work.items[made.id] = made
        changed.append(made)
    if work.refused:
        message = (
            f"cannot drop column {gone} of table {old.name} because other objects depend on it"
        )
        if gone is None:
            message = f"cannot alter {old} because other objects depend on it"
        raise DependentObjects(
            message, detail="; ".join(work.refused), hint="write CASCADE to drop these too"
        )
    removed = set(work.dropped)
    if anew:
        removed |= work.ids.keys()
        for before, after in work.ids.items():
            roles = roles.inherited(str(before), str(after))
        changed += _owned(catalog, old, new, there)
    return Rebuilt(changed, removed, roles if anew else None)


def _owned(
    catalog: Catalog, old: RelationItem, new: RelationItem, places: Mapping[int, int]
) -> list[Item]:
    """Return the sequences of a table's columns, which are another table's now."""
    found: list[Item] = []
    for sequence in catalog.of_kind(Sequence):
        of = sequence.owned_by
        if of is not None and of.table == old.id and of.column - 1 in places:
            after = of._replace(table=new.id, column=places[of.column - 1] + 1)
            found.append(replace(sequence, owned_by=after))
    return found


def _remade(work: _Rebuild, item: Item, target: ObjectId) -> Item | None:
    """Return a dependant over what there is now; None if it goes."""
    depends = frozenset(work.ids.get(i, i) for i in item.depends)
    if isinstance(item, Index):
        return _index(work, item, target, depends)
    assert isinstance(item, View | MaterializedView)
    seen = _seen(work, item)
    statement = parse_statement(item.sql)
    assert isinstance(statement, CreateView | CreateMaterializedView)
    catalog = replace(work.catalog, items=work.items)
    known = [one for one in seen if one is not None]
    try:
        plan, _ = plan_view(statement, catalog, known)
    except Error:
        plan = None
    before = work.catalog[item.id]
    assert isinstance(before, RelationItem)
    columns = [(c.name, c.type) for c in before.schema]
    if plan is None or [(c.name, c.type) for c in plan.schema] != columns:
        what = "table" if work.gone is None else f"column {work.gone} of table"
        if not work.cascade:
            work.refused.append(f"{item} depends on {what} {work.old.name}")
        return None
    if isinstance(item, MaterializedView):
        plan = rewrite(plan, RewriteContext())
    return replace(item, id=target, depends=depends, plan=plan, seen=tuple(known))


def _index(
    work: _Rebuild, item: Index, target: ObjectId, depends: frozenset[ObjectId]
) -> Index | None:
    """Return an index on what there is now; one over a column that is gone goes too."""
    on = work.ids.get(item.on, item.on)
    key = item.key
    if item.on == work.old.id:
        if any(at not in work.places for at in key):
            return None
        key = tuple(work.places[at] for at in key)
    plan, rows = kept_by_index(work.items[on])
    return replace(item, id=target, depends=depends, on=on, key=key, plan=plan, rows=rows)


def _seen(work: _Rebuild, item: View | MaterializedView) -> list[Seen]:
    """Return what a view sees of the relations that are not as it saw them."""
    found = []
    known = {one.item: one for one in item.seen}
    for needed in sorted(item.depends, key=number_of):
        one = known.get(needed)
        now = work.ids.get(needed, needed)
        if needed != work.old.id:
            if one is not None:
                found.append(one._replace(item=now))
            continue
        if one is None:
            columns = tuple((c.name, at) for at, c in enumerate(work.old.schema))
            one = Seen(needed, work.old.name, columns)
        kept = tuple((n, work.places[at]) for n, at in one.columns if at in work.places)
        found.append(Seen(now, one.name, kept))
    return found
