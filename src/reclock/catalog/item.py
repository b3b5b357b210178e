"""Catalog objects, and the records that keep them.

A record is JSON with a version. It holds the statement that made the object, as it was
written, and what the text does not say: its name, timeline, the ids it depends on, the
columns a view's rows are arranged by. Everything else is read from the text again when a
database is opened, so there is one truth about an object: its SQL.

Invariant: nothing depends on itself, however indirectly. An object is made of older ones, which
have smaller ids; only a materialized view that was replaced may be made of younger ones
(``in_order``).

Tests: tests/catalog/test_catalog.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from reclock.dataflow.envelope import NONE, OWN_TIMES, TRANSACTIONS
from reclock.dataflow.keying import Keying
from reclock.dataflow.types import arrow_types
from reclock.ids import ObjectId
from reclock.sql.names import CatalogItem
from reclock.sql.parse.columns import is_literal
from reclock.sql.plan.scalar import ColumnRef
from reclock.sql.plan.scalar import walk as walk_scalar
from reclock.sql.schema import Column, Schema
from reclock.sql.types import Char, Varchar
from reclock.time.expiry import DataflowKind
from reclock.time.frontier import CLOSED
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reclock.catalog.seen import Seen
    from reclock.durable.keyed import Json
    from reclock.sql.plan.node import Keys, Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.statement import CreateSink, CreateSource
    from reclock.sql.syntax.expression import Expression
    from reclock.sql.types import Declared
    from reclock.time.frontier import Frontier
    from reclock.time.refresh import Schedule
    from reclock.time.timeline import Timeline

VERSION: Final = 6
"""Of records: 2 may have an ``owner``, 3 what came with sequences and CHECK, 4 a ``revision``,
5 UNIQUE, 6 connections and secrets.

What a record of an earlier version can say is written as one.
"""

_OWNED: Final = 2
SERIAL: Final = 3
REPLACED: Final = 4
UNIQUE: Final = 5
CONNECTED: Final = 6


class Linked(NamedTuple):
    """What the statement of a source or a sink takes from connections."""

    connections: frozenset[ObjectId] = frozenset()
    options: frozenset[str] = frozenset()
    """Options that are the connections', and not kept with the object."""


NOT_LINKED: Final = Linked()


@dataclass(frozen=True)
class Item:
    """What every object has; ``sql`` is the statement that made it."""

    kind: ClassVar[str] = "object"
    keeps_state: ClassVar[bool] = True

    id: ObjectId
    name: str
    sql: str
    timeline: Timeline | None
    depends: frozenset[ObjectId] = frozenset()
    retain_history_ms: int | None = None
    owner: str | None = field(default=None, kw_only=True)
    """The role that made it, or was given it; None is the user who opened the database."""

    comments: Mapping[str, str] = field(default_factory=dict, kw_only=True, hash=False)
    """What it means, and its columns, by their names; it itself is the empty one."""

    @property
    def arranges(self) -> bool:
        """Whether a timeline's graph has something because of it."""
        return self.keeps_state

    def record(self) -> Json:
        """Return what the catalog stores."""
        made: Json = {"v": 1, "kind": self.kind, "name": self.name, "sql": self.sql}
        if self.owner is not None:
            made |= {"v": _OWNED, "owner": self.owner}
        if self.timeline is not None:
            made["timeline"] = str(self.timeline)
        if self.depends:
            made["depends"] = sorted(self.depends, key=number_of)
        if self.retain_history_ms is not None:
            made["retain_history_ms"] = self.retain_history_ms
        if self.comments:
            made |= {"v": SERIAL, "comments": dict(self.comments)}
        return made

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class RelationItem(Item):
    """An object with rows: one that a query can name."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        raise NotImplementedError

    def relation(self) -> CatalogItem:
        """Return what planning sees of it."""
        raise NotImplementedError


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; ``default`` None is NULL, ``length`` that of a varchar, or a char.

    With a ``sequence`` its default is the next number of that; ``identity`` is ``always`` or
    ``by default`` if it was declared so.
    """

    column: Column
    default: Expression | None = None
    length: int | None = None
    fixed: bool = False
    default_text: str | None = field(default=None, compare=False)
    """The default as it was written."""
    sequence: ObjectId | None = None
    identity: str | None = None

    @property
    def declared(self) -> Declared:
        """The type as it was declared."""
        if self.length is None:
            return self.column.type
        return Char(self.length) if self.fixed else Varchar(self.length)


def _is_new(column: TableColumn) -> bool:
    """Return whether records of an earlier version cannot have a column."""
    return column.fixed or not (column.default is None or is_literal(column.default))


@dataclass(frozen=True)
class Check:
    """A condition that is not false for any row; ``text`` is it as it was written."""

    name: str
    condition: Scalar
    text: str

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it uses, in the order in which it names them."""
        parts = walk_scalar(self.condition)
        return tuple(dict.fromkeys(p.index for p in parts if isinstance(p, ColumnRef)))


@dataclass(frozen=True)
class Table(RelationItem):
    """Rows that users write; ``primary_key`` holds positions, and is checked if ``enforced``."""

    kind: ClassVar[str] = "table"

    columns: tuple[TableColumn, ...] = ()
    primary_key: tuple[int, ...] = ()
    enforced: bool = True
    key_name: str | None = None
    """The name of the primary key, if it was given one."""
    checks: tuple[Check, ...] = ()
    says_unique: bool = field(default=False, compare=False)
    """Whether its text has UNIQUE constraints, which are unique indexes."""

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record()
        drawn = {str(at): c.sequence for at, c in enumerate(self.columns) if c.sequence}
        if drawn:
            made["sequences"] = drawn
        if drawn or self.checks or self.key_name or any(map(_is_new, self.columns)):
            made["v"] = SERIAL
        return made | {"v": UNIQUE} if self.says_unique else made

    @property
    def key_constraint(self) -> str:
        """The name of the primary key, as a constraint."""
        return self.key_name or f"{self.name}_pkey"

    @cached_property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(tuple(c.column for c in self.columns))

    @property
    def key(self) -> tuple[int, ...]:
        """The columns its rows are arranged by: the key that is checked, else all."""
        if self.primary_key and self.enforced:
            return self.primary_key
        return tuple(range(len(self.columns)))

    @property
    def checks_key(self) -> bool:
        """Whether a second row with the same key is refused."""
        return bool(self.primary_key) and self.enforced

    @cached_property
    def keying(self) -> Keying:
        """How its rows are arranged, in its collection and in the log of writes."""
        return Keying(arrow_types(self.schema), self.key)

    def relation(self) -> CatalogItem:
        """Return what planning sees of it."""
        keys: Keys = frozenset({frozenset(self.key)}) if self.checks_key else frozenset()
        return CatalogItem(self.id, self.name, self.kind, self.schema, self.timeline, keys)


@dataclass(frozen=True)
class Source(RelationItem):
    """Rows made of records that are read from outside; ``envelope`` says how.

    ``primary_key`` holds positions; the envelopes that have one see to it that it is unique.
    ``statement`` has the secrets that ``sql`` does not show; ``facts`` are what was found
    out when the source was created. All it may depend on, but for connections, is what supplies
    its bindings: a relation (``using``), or the source of a database that it is a table of
    (``parent``).
    """

    kind: ClassVar[str] = "source"

    columns: tuple[TableColumn, ...] = ()
    primary_key: tuple[int, ...] = ()
    envelope: str = NONE
    statement: CreateSource = field(kw_only=True, repr=False)
    facts: Json = field(kw_only=True, default_factory=dict)
    secrets: Mapping[str, str] = field(kw_only=True, default_factory=dict, repr=False)
    parent: ObjectId | None = field(kw_only=True, default=None)
    """The source that it is a table of: then it has no remap of its own."""
    linked: Linked = field(kw_only=True, default=NOT_LINKED)

    @property
    def bound_by(self) -> ObjectId:
        """The source whose remap says its times."""
        return self.parent or self.id

    @property
    def brings_times(self) -> bool:
        """Whether the times of its rows are not the system's: it has a pace of its own."""
        given = self.is_transactional and (self.statement.reclock_into_epoch or not self.is_strict)
        return (self.states and not given) or self.using is not None

    @property
    def using(self) -> ObjectId | None:
        """The relation that supplies its bindings, if one does: ``RECLOCK USING``."""
        if self.parent is not None:
            return None
        return next(iter(self.depends - self.linked.connections), None)

    @property
    def states(self) -> bool:
        """Whether its records state times, or transactions: what they say waits for the rest."""
        return self.envelope in OWN_TIMES or self.is_transactional

    @property
    def is_transactional(self) -> bool:
        """Whether a consistency topic says which of its rows belong together."""
        return self.statement.consistency_topic is not None

    @property
    def is_strict(self) -> bool:
        """Whether its transactions are released in their order."""
        return dict(self.statement.options).get("transaction_order", "strict") == "strict"

    @property
    def on_error(self) -> str:
        """What becomes of records that do not decode; ``fail`` is another word for ``report``."""
        given = dict(self.statement.options).get("on_error", "report")
        return "report" if given == "fail" else given

    @property
    def skips(self) -> bool:
        """Whether records that do not decode are dead letters from now on."""
        return self.on_error == "skip"

    @property
    def keeps_letters(self) -> bool:
        """Whether it has, or may get, dead letters: once it skips it keeps what it skipped."""
        return self.skips or bool(self.facts.get("dead_letters"))

    @property
    def records(self) -> str:
        """The envelope of what is read; ``envelope`` is that of what comes into the graph."""
        return TRANSACTIONS if self.is_transactional else self.envelope

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record() | {"facts": self.facts}
        if self.linked.connections:
            made["v"] = CONNECTED
        return made | {"secrets": dict(self.secrets)} if self.secrets else made

    @cached_property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(tuple(c.column for c in self.columns))

    @property
    def key(self) -> tuple[int, ...]:
        """The columns its rows are arranged by: the primary key, else all."""
        return self.primary_key or tuple(range(len(self.columns)))

    def relation(self) -> CatalogItem:
        """Return what planning sees of it."""
        unique = bool(self.primary_key) and self.envelope != NONE
        keys: Keys = frozenset({frozenset(self.primary_key)}) if unique else frozenset()
        return CatalogItem(self.id, self.name, self.kind, self.schema, self.timeline, keys)


def _seen_record(seen: tuple[Seen, ...]) -> Json:
    return {"v": SERIAL, "seen": [one.record() for one in seen]} if seen else {}


@dataclass(frozen=True)
class View(RelationItem):
    """A query under a name; it stores nothing."""

    kind: ClassVar[str] = "view"
    keeps_state: ClassVar[bool] = False

    plan: Node = field(kw_only=True)
    seen: tuple[Seen, ...] = field(kw_only=True, default=())
    """Relations that its text calls by names of another time."""

    def record(self) -> Json:
        """Return what the catalog stores."""
        return super().record() | _seen_record(self.seen)

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.plan.schema

    def relation(self) -> CatalogItem:
        """Return what planning sees of it: the query it stands for."""
        keys = self.plan.unique_keys
        return CatalogItem(
            self.id, self.name, self.kind, self.schema, self.timeline, keys, self.plan
        )


@dataclass(frozen=True)
class MaterializedView(RelationItem):
    """A query whose rows are kept; ``key`` holds the positions they are arranged by.

    With a ``schedule`` they are those of its last refresh.
    """

    kind: ClassVar[str] = "materialized view"
    dataflow: ClassVar[DataflowKind] = DataflowKind.MATERIALIZED_VIEW

    plan: Node = field(kw_only=True)
    key: tuple[int, ...] = ()
    schedule: Schedule | None = None
    seen: tuple[Seen, ...] = field(kw_only=True, default=())
    """Relations that its text calls by names of another time."""
    revision: int = field(kw_only=True, default=0)
    """How often it was replaced by another query."""

    @property
    def until(self) -> Frontier:
        """The time from which it is not read."""
        return CLOSED

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.plan.schema

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record() | {"key": list(self.key)} | _seen_record(self.seen)
        if self.revision:
            made |= {"v": REPLACED, "revision": self.revision}
        return made if self.schedule is None else made | {"created": self.schedule.created}

    def relation(self) -> CatalogItem:
        """Return what planning sees of it: its rows, or its query if that reads nothing."""
        keys = self.plan.unique_keys
        if (
            self.plan.timeline.timeline is None and self.schedule is None
        ):  # constants hold in every timeline
            plan = self.plan
            return CatalogItem(self.id, self.name, self.kind, self.schema, None, keys, plan)
        return CatalogItem(self.id, self.name, self.kind, self.schema, self.timeline, keys)


@dataclass(frozen=True)
class Index(Item):
    """The rows of ``on``, arranged by some of its columns.

    One on a view keeps the rows of the view: ``plan`` is what computes them. A view that is but
    another name of a relation has the rows of that, ``rows``. No two rows of a table have the same
    values in the columns of a ``unique`` one; NULL is the same as NULL unless ``nulls_distinct``.
    It may be that of a UNIQUE ``constraint``, and goes with that.
    """

    kind: ClassVar[str] = "index"
    dataflow: ClassVar[DataflowKind] = DataflowKind.INDEX

    on: ObjectId = field(kw_only=True)
    key: tuple[int, ...] = ()
    schedule: ClassVar[Schedule | None] = None
    plan: Node | None = field(kw_only=True, default=None)
    rows: ObjectId | None = field(kw_only=True, default=None)
    unique: bool = field(kw_only=True, default=False)
    nulls_distinct: bool = field(kw_only=True, default=True)
    constraint: bool = field(kw_only=True, default=False)

    @property
    def arranged(self) -> ObjectId:
        """The object whose rows it has in another order, if it keeps no view."""
        return self.rows or self.on

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record() | {"on": self.on, "key": list(self.key)}
        if self.unique:
            made |= {"v": UNIQUE, "constraint": self.constraint}
        return made


class Phase(NamedTuple):
    """A relation that a sink writes the changes of, from ``start`` on."""

    relation: ObjectId
    start: Timestamp


@dataclass(frozen=True)
class Sink(Item):
    """The changes of ``relation``, written outside.

    ``facts`` are what was decided: the time it begins at, its topics, and which other relations
    it was made of before which times, while those are not written yet. ``statement`` has the
    secrets that ``sql`` does not show. ``shadow`` are the columns that its relations are arranged
    by for its sake: those of a key that may repeat.
    """

    kind: ClassVar[str] = "sink"
    keeps_state: ClassVar[bool] = False

    relation: ObjectId = field(kw_only=True)
    statement: CreateSink = field(kw_only=True, repr=False)
    facts: Json = field(kw_only=True, default_factory=dict)
    secrets: Mapping[str, str] = field(kw_only=True, default_factory=dict, repr=False)
    shadow: tuple[int, ...] = field(kw_only=True, default=())
    linked: Linked = field(kw_only=True, default=NOT_LINKED)

    @property
    def arranges(self) -> bool:
        """Whether a timeline's graph has something because of it."""
        return bool(self.shadow)

    @property
    def as_of(self) -> Timestamp:
        """The time it begins at."""
        return Timestamp(self.facts["as_of"])

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """What it is made of, and from when on; the last one for good."""
        past = self.facts.get("past", ())
        relations = [*(ObjectId(relation) for relation, _ in past), self.relation]
        starts = [self.as_of, *(Timestamp(until) for _, until in past)]
        return tuple(map(Phase, relations, starts))

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record() | {"relation": self.relation, "facts": self.facts}
        if self.linked.connections:
            made["v"] = CONNECTED
        return made | {"secrets": dict(self.secrets)} if self.secrets else made


def in_order(depends: Mapping[ObjectId, Iterable[ObjectId]]) -> list[ObjectId]:
    """Return objects in an order in which each follows what it depends on; ties go by number.

    >>> in_order({ObjectId("u1"): ["u9"], ObjectId("u9"): [], ObjectId("u2"): ["u1"]})
    ['u9', 'u1', 'u2']
    """
    found: dict[ObjectId, None] = {}
    for first in sorted(depends, key=number_of):
        path = {first: _below(first, depends)} if first not in found else {}
        while path:
            item = next(reversed(path))
            needed = next((i for i in path[item] if i not in found and i not in path), None)
            if needed is None:
                del path[item]
                found[item] = None
            else:
                path[needed] = _below(needed, depends)
    return list(found)


def _below(item: ObjectId, depends: Mapping[ObjectId, Iterable[ObjectId]]) -> Iterator[ObjectId]:
    """Yield what an object depends on, of what there is."""
    return iter(sorted((i for i in depends[item] if i in depends), key=number_of))


def article(noun: str) -> str:
    """Return a noun with its article, for messages.

    >>> article("table"), article("index")
    ('a table', 'an index')
    """
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def number_of(item: ObjectId) -> int:
    """Return the number in an id: ids are ordered by it.

    >>> from reclock.ids import ObjectId
    >>> number_of(ObjectId("u12"))
    12
    """
    return int(item[1:])
