"""The catalog in memory: a frozen fold over its durable records.

``Catalog`` is one version of it, and what planning sees of it (``sql.names.CatalogView``).
A change gives the next version and never touches this one, so a statement that fails has
changed nothing, and a reader keeps the version it began with.

Ids are never reused: an object made in version n is called u(n+1), and versions only
increase. All objects share one name space, as in a PostgreSQL schema called ``public``. The
schema ``reclock`` has the system relations (``system``), in every version the same.

Tests: tests/catalog/test_catalog.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.catalog.item import (
    Index,
    Item,
    RelationItem,
    Sink,
    Source,
    Table,
    View,
    article,
    in_order,
    number_of,
)
from reclock.catalog.serial.item import Sequence
from reclock.catalog.system_relation import SCHEMA as SYSTEM_SCHEMA
from reclock.catalog.system_relation import SystemRelation
from reclock.catalog.unique import UniqueKey
from reclock.errors import DependentObjects, DuplicateName, StatementError, UndefinedName
from reclock.ids import ObjectId
from reclock.sql.names import near_hint
from reclock.sql.plan.relation import Get, with_inputs
from reclock.time.pace import Own, joined, order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.sql.names import CatalogItem
    from reclock.sql.plan.node import Node
    from reclock.sql.syntax.expression import Name
    from reclock.time.pace import Pace
    from reclock.time.timeline import Timeline

SCHEMA: Final = "public"
DATABASE: Final = "reclock"

I = TypeVar("I", bound=Item)  # noqa: E741 - an item


@dataclass(frozen=True)
class Catalog:
    """The objects of one version, in the order of their ids."""

    version: int = 0
    items: Mapping[ObjectId, Item] = field(default_factory=dict)
    reads_indexes: bool = field(default=True, kw_only=True)
    """Whether reads of a view that an index keeps read the index."""
    system: Mapping[ObjectId, SystemRelation] = field(
        default_factory=dict, kw_only=True, repr=False, compare=False
    )
    """The system relations, in every version the same."""
    whole: Catalog | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The same with the indexes that are left out here, because they are not to be read."""

    @cached_property
    def _by_name(self) -> Mapping[str, Item]:
        return {item.name: item for item in self.items.values()}

    @cached_property
    def _dependents(self) -> Mapping[ObjectId, tuple[ObjectId, ...]]:
        found: dict[ObjectId, list[ObjectId]] = {}
        for item in self.items.values():
            for needed in item.depends:
                found.setdefault(needed, []).append(item.id)
        return {needed: tuple(by) for needed, by in found.items()}

    @cached_property
    def _unique(self) -> Mapping[ObjectId, tuple[Index, ...]]:
        found: dict[ObjectId, list[Index]] = {}
        for index in (self.whole or self).of_kind(Index):
            if index.unique:
                found.setdefault(index.on, []).append(index)
        return {on: tuple(indexes) for on, indexes in found.items()}

    def unique_indexes(self, table: Table) -> tuple[Index, ...]:
        """Return the unique indexes on a table, in the order of their ids."""
        return self._unique.get(table.id, ())

    def unique_keys(self, table: Table) -> tuple[UniqueKey, ...]:
        """Return what no two rows of a table may have in common, the primary key first."""
        keys = []
        if table.checks_key:
            keys.append(UniqueKey(table.key_constraint, table.primary_key))
        keys += [
            UniqueKey(i.name, i.key, i.id, i.nulls_distinct, i.constraint)
            for i in self.unique_indexes(table)
        ]
        return tuple(keys)

    @property
    def next_id(self) -> ObjectId:
        """The id of an object made in this version."""
        return ObjectId(f"u{self.version + 1}")

    def __getitem__(self, item: ObjectId) -> Item:
        return self.items[item]

    @cached_property
    def paces(self) -> Mapping[ObjectId, Pace]:
        """With whom each object moves, of those that have a timeline."""
        found: dict[ObjectId, Pace] = {}
        for item in sorted(self.items.values(), key=lambda item: isinstance(item, Sink)):
            if item.timeline is None:
                continue
            if isinstance(item, Source) and item.brings_times:
                found[item.id] = Own(item.timeline, (item.id,))
            else:
                needed = (found[i] for i in item.depends if i in found)
                found[item.id] = joined(item.timeline, needed)
        return found

    def order(self, pace: Pace) -> tuple[bool, int, bool, str]:
        """Return when to move a pace: after those that it takes its times from."""
        joint, common, name = order(pace)
        return joint, self._ranks.get(pace, 0), common, name

    @cached_property
    def _ranks(self) -> Mapping[Pace, int]:
        """Which paces move later than others: those of supplied bindings, then their timelines."""
        bound = [source for source in self.of_kind(Source) if source.using is not None]
        suppliers = {self.paces[source.using] for source in bound if source.using is not None}
        timelines = {source.timeline for source in bound if source.timeline is not None}
        after: dict[Pace, int] = dict.fromkeys(timelines - suppliers, 2)
        return after | {self.paces[source.id]: 1 for source in bound}

    @cached_property
    def origins(self) -> Mapping[ObjectId, frozenset[ObjectId]]:
        """The sources that the rows of each object come from."""
        found: dict[ObjectId, frozenset[ObjectId]] = {}
        for item in self.items.values():
            own = isinstance(item, Source) and item.parent is None
            found[item.id] = frozenset({item.id}) if own else self.origins_of(item, found)
        return found

    @staticmethod
    def origins_of(
        item: Item, known: Mapping[ObjectId, frozenset[ObjectId]]
    ) -> frozenset[ObjectId]:
        """Return the sources of what an object depends on."""
        return frozenset().union(*(known.get(below, frozenset()) for below in item.depends))

    def pace(self, timeline: Timeline, depends: Iterable[ObjectId]) -> Pace:
        """Return the pace of what is defined by ``depends`` in a timeline."""
        return joined(timeline, (self.paces[item] for item in depends if item in self.paces))

    def of_pace(self, pace: Pace) -> tuple[Item, ...]:
        """Return the objects of a pace, in an order in which inputs come first."""
        return tuple(item for item in self.items.values() if self.paces.get(item.id) == pace)

    def of_kind(self, kind: type[I]) -> tuple[I, ...]:
        """Return all objects of a kind, in the order of their ids."""
        return tuple(item for item in self.items.values() if isinstance(item, kind))

    # What planning sees.

    @cached_property
    def kept_views(self) -> Mapping[int, tuple[View, Index]]:
        """The views that an index keeps, by the identity of their plans, with the oldest index."""
        found: dict[int, tuple[View, Index]] = {}
        for index in self.of_kind(Index):
            view = self.items[index.on]
            if index.plan is not None and isinstance(view, View) and view.timeline is not None:
                found.setdefault(id(view.plan), (view, index))
        return found if self.reads_indexes else {}

    @cached_property
    def plain(self) -> Catalog:
        """The same for reads at times before an index was made: each view is its query."""
        return replace(self, reads_indexes=False) if self.kept_views else self

    def kept(self, plan: Node) -> Node:
        """Return a plan that reads the rows of views where an index keeps them."""
        known = self.kept_views.get(id(plan))
        if known is not None:
            view, index = known
            return Get(index.id, view.name, view.schema, view.timeline, view.plan.unique_keys)
        inputs = tuple(map(self.kept, plan.inputs))
        same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
        return plan if same else with_inputs(plan, inputs)

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        """Return the relation of that name, qualified or not, or None."""
        item = self.find(name)
        return item.relation() if isinstance(item, RelationItem) else None

    def relation_names(self) -> tuple[str, ...]:
        """Return the names of all relations, for hints."""
        users = (item.name for item in self.of_kind(RelationItem))
        return (*users, *(relation.name for relation in self.system.values()))

    # What statements need.

    def find(self, name: tuple[str, ...]) -> Item | None:
        """Return the object of that name, qualified or not, or None."""
        *schema, last = _in_database(name)
        if schema == [SYSTEM_SCHEMA]:
            return self.system.get(ObjectId(f"{SYSTEM_SCHEMA}.{last}"))
        return self._by_name.get(last) if schema in ([], [SCHEMA]) else None

    def get(self, name: Name, kind: type[I]) -> I:
        """Return the object of that name and kind, or say why there is none."""
        item = self.find(name.parts)
        if item is None:
            raise self.undefined(name, kind)
        if isinstance(item, SystemRelation) and not issubclass(SystemRelation, kind):
            message = f'"{item.name}" is a system relation, not {article(kind.kind)}'
            hint = "system relations can only be read"
            raise StatementError(message, hint=hint, code="42501", position=name.position)
        if not isinstance(item, kind):
            wanted = "relation" if kind in {Item, RelationItem} else kind.kind
            message = f'"{item.name}" is not {article(wanted)}'
            hint = f"it is {article(item.kind)}"
            raise StatementError(message, hint=hint, code="42809", position=name.position)
        return item

    def undefined(self, name: Name, kind: type[Item]) -> UndefinedName:
        """Return the error for a name that no object has."""
        relations = issubclass(RelationItem, kind)
        names = self.relation_names() if relations else [i.name for i in self.of_kind(kind)]
        noun = "relation" if kind in {Item, RelationItem} else kind.kind
        message = f'{noun} "{name}" does not exist'
        return UndefinedName(
            message, code="42P01", hint=near_hint(name, names), position=name.position
        )

    def check_new(self, name: Name) -> str:
        """Return the name of a new object; refuse one that is taken, or in no schema of ours."""
        *schema, last = _in_database(name.parts)
        if schema == [SYSTEM_SCHEMA]:
            message = f'schema "{SYSTEM_SCHEMA}" is for system relations'
            hint = f'leave the schema out, or write "{SCHEMA}"'
            raise StatementError(message, hint=hint, code="42501", position=name.position)
        if schema not in ([], [SCHEMA]):
            message = f'schema "{".".join(schema)}" does not exist'
            raise UndefinedName(message, code="3F000", position=name.position)
        if (taken := self._by_name.get(last)) is not None:
            message = f'relation "{last}" already exists'
            detail, hint = f"it is {article(taken.kind)}", "choose another name, or DROP it first"
            raise DuplicateName(message, detail=detail, hint=hint, position=name.position)
        return last

    def free_name(self, wanted: str, taken: Iterable[str] = ()) -> str:
        """Return ``wanted``, with a number after it if an object has that name, or it is taken."""
        name, number, others = wanted, 0, set(taken)
        while name in self._by_name or name in others:
            number += 1
            name = f"{wanted}{number}"
        return name

    def dependents(self, items: Iterable[ObjectId]) -> frozenset[ObjectId]:
        """Return all that is defined by ``items``, directly or not, without these."""
        roots = set(items)
        found: set[ObjectId] = set()
        waiting = list(roots)
        while waiting:
            for by in self._dependents.get(waiting.pop(), ()):
                if by not in found:
                    found.add(by)
                    waiting.append(by)
        return frozenset(found - roots)

    def inputs(self, item: ObjectId) -> frozenset[ObjectId]:
        """Return all that an object is defined by, directly or not, without itself."""
        found: set[ObjectId] = set()
        waiting = [item]
        while waiting:
            for needed in self.items[waiting.pop()].depends:
                if needed not in found:
                    found.add(needed)
                    waiting.append(needed)
        return frozenset(found)

    def to_drop(self, items: Iterable[ObjectId], *, cascade: bool) -> frozenset[ObjectId]:
        """Return what goes when ``items`` are dropped; refuse if others need them.

        Indexes go with what they are on: they are not requested by name.
        """
        roots = frozenset(items)
        needing = self.dependents(roots)
        owned = self._owned(roots | needing) - roots
        if owned:
            return self.to_drop(roots | owned, cascade=cascade)
        self._check_drawn(roots | needing, cascade=cascade)
        with_roots = {i for i in needing if self._is_of(i, roots)}
        others = [i for i in needing - with_roots if not isinstance(self.items[i], Index)]
        if others and not cascade:
            names = ", ".join(self.items[i].name for i in sorted(roots, key=number_of))
            detail = "; ".join(
                f"{self.items[by]} depends on {self.items[needed]}"
                for by in sorted(others, key=number_of)
                for needed in sorted(self.items[by].depends & (roots | needing), key=number_of)
            )
            message = f"cannot drop {names} because other objects depend on it"
            hint = "write CASCADE to drop these too"
            raise DependentObjects(message, detail=detail, hint=hint)
        return roots | needing

    def _owned(self, items: frozenset[ObjectId]) -> frozenset[ObjectId]:
        """Return the sequences that belong to columns of some tables."""
        return frozenset(
            s.id for s in self.of_kind(Sequence) if s.owned_by and s.owned_by.table in items
        )

    def drawing(self, items: Iterable[ObjectId]) -> tuple[tuple[Table, int, Sequence], ...]:
        """Return the columns whose defaults are numbers of some sequences."""
        found = []
        wanted = set(items)
        for table in self.of_kind(Table) if wanted else ():
            for at, column in enumerate(table.columns):
                if column.sequence in wanted:
                    sequence = self.items[column.sequence]
                    assert isinstance(sequence, Sequence)
                    found.append((table, at, sequence))
        return tuple(found)

    def _check_drawn(self, gone: frozenset[ObjectId], *, cascade: bool) -> None:
        """Refuse to drop sequences that defaults of other tables need."""
        sequences = [i for i in gone if isinstance(self.items[i], Sequence)]
        needing = [found for found in self.drawing(sequences) if found[0].id not in gone]
        if not needing or cascade:
            return
        names = ", ".join(dict.fromkeys(sequence.name for _, _, sequence in needing))
        detail = "; ".join(
            f"default value for column {table.schema[at].name} of table {table.name} "
            f"depends on sequence {sequence.name}"
            for table, at, sequence in needing
        )
        message = f"cannot drop sequence {names} because other objects depend on it"
        if any(t.columns[at].identity for t, at, _ in needing):
            table, at, sequence = next(n for n in needing if n[0].columns[n[1]].identity)
            column = f"column {table.schema[at].name} of table {table.name}"
            message = f"cannot drop sequence {sequence.name} because {column} requires it"
            raise DependentObjects(message, hint=f"You can drop {column} instead.")
        raise DependentObjects(message, detail=detail, hint="write CASCADE to drop these too")

    def _is_of(self, item: ObjectId, sources: frozenset[ObjectId]) -> bool:
        """Return whether an object is a table of one of these sources."""
        found = self.items[item]
        return isinstance(found, Source) and found.parent in sources

    def changed(
        self, added: Iterable[Item], removed: Iterable[ObjectId], least: int = 1
    ) -> Catalog:
        """Return the next version; every new object has a number of its own.

        What is made and gone again at once has had one too: it is at ``least`` so many further.
        """
        added = tuple(added)
        steps = max(least, sum(item.id not in self.items for item in added))
        gone = set(removed)
        items = {i: item for i, item in self.items.items() if i not in gone}
        items |= {item.id: item for item in added}
        if any(_is_replaced(item, self.items.get(item.id)) for item in added):
            needed = {i: item.depends for i, item in items.items()}
            items = {i: items[i] for i in in_order(needed)}
        return replace(self, version=self.version + steps, items=items, whole=None)


def _is_replaced(item: Item, before: Item | None) -> bool:
    """Return whether an object may depend on younger ones since now."""
    return before is not None and item.depends != before.depends


def _in_database(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name without the database, of which there is one; others are left as they are.

    >>> _in_database(("reclock", "public", "t")), _in_database(("reclock", "ticks"))
    (('public', 't'), ('reclock', 'ticks'))
    """
    return name[1:] if len(name) == 3 and name[0] == DATABASE else name
