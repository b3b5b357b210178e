"""Transactions of the log, gathered until a tick may have them: whole ones only.

An ``Assembly`` takes in messages one after the other and has the rows of each table since it was
begun. Its *frontier* is the end of the last transaction that is complete; while one is open it must
not be staged. A transaction that cannot be taken in raises, and nothing of it is staged:
``Failing`` says where it begins, so that what is before it can be.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from reclock.connectors.postgres.pgoutput import Begin, Change, Commit, Relation, Truncate
from reclock.connectors.postgres.rows import RowsBuilder
from reclock.connectors.postgres.table import Mapped, Table
from reclock.errors import SourceRegressed
from reclock.ingest.postgres.define import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.postgres.pgoutput import Message
    from reclock.connectors.postgres.rows import Rows
    from reclock.ids import ObjectId


class Failing(NamedTuple):
    """A transaction that cannot be taken in: where its commit record is, and why."""

    lsn: int
    error: SourceRegressed


@dataclass
class Relations:
    """What the log has said of the tables so far in this session, and how many changes came."""

    tables: Mapping[int, tuple[ObjectId, Table]]
    """The tables of the source, by their numbers there."""
    known: dict[int, Mapped | SourceRegressed] = field(default_factory=dict)
    order: int = 0

    def note(self, relation: Relation) -> None:
        """Note what a table is from here on; what is wrong with it concerns who changes it."""
        if relation.id in self.tables:
            _, table = self.tables[relation.id]
            try:
                self.known[relation.id] = Mapped.of(table, fields_of(table), relation)
            except SourceRegressed as error:
                self.known[relation.id] = error

    def found(self, relation: int) -> tuple[ObjectId, Table, Mapped] | None:
        """Return a table and how it is now; None: the source does not have it."""
        found = self.tables.get(relation)
        if found is None:
            return None
        mapped = self.known[relation]
        if isinstance(mapped, SourceRegressed):
            raise mapped
        return *found, mapped


class Assembly:
    """The transactions since the last that was staged."""

    def __init__(self, relations: Relations, frontier: int) -> None:
        self._relations = relations
        self._builders: dict[ObjectId, RowsBuilder] = {}
        self._at: int | None = None
        self.read: set[int] = set()
        """The numbers of the transactions."""
        self.frontier = frontier
        self.micros: int | None = None
        self.rows = 0
        self.transactions = 0
        self.size = 0
        """How much it is, in bytes, about."""
        self._found: dict[int, tuple[RowsBuilder, Mapped] | None] = {}
        """By the numbers of relations, as they are now."""

    @property
    def is_open(self) -> bool:
        """Whether a transaction is not complete."""
        return self._at is not None

    @property
    def offset(self) -> int:
        """Where the commit record of the open transaction is."""
        assert self._at is not None
        return self._at

    def take(self, message: Message) -> None:
        """Take in a message; raise ``SourceRegressed`` if its transaction cannot be taken in."""
        match message:
            case Change():
                found = self._builder(message.relation)
                if found is not None:
                    builder, mapped = found
                    before = builder.size
                    self._relations.order += 1
                    builder.add(message, mapped, self.offset, self._relations.order)
                    self.rows += 1
                    self.size += builder.size - before
            case Begin(final, _, xid):
                self._at = final
                self.read.add(xid)
            case Commit(_, end, micros):
                self._at = None
                self.frontier = end
                self.micros = micros
                self.transactions += 1
            case Relation():
                self._relations.note(message)
                self._found.pop(message.id, None)
            case Truncate(relations):
                for relation in relations:
                    found = self._builder(relation)
                    if found is not None:
                        self._relations.order += 1
                        found[0].truncate(self.offset, self._relations.order)
                        self.rows += 1

    def _builder(self, relation: int) -> tuple[RowsBuilder, Mapped] | None:
        if relation not in self._found:
            self._found[relation] = self._made(relation)
        return self._found[relation]

    def _made(self, relation: int) -> tuple[RowsBuilder, Mapped] | None:
        found = self._relations.found(relation)
        if found is None:
            return None
        item, table, mapped = found
        if item not in self._builders:
            self._builders[item] = RowsBuilder(table, mapped.fields)
        return self._builders[item], mapped

    def finish(self) -> dict[ObjectId, Rows]:
        """Return the rows of each table."""
        assert not self.is_open
        return {item: builder.finish() for item, builder in self._builders.items()}
