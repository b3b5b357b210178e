"""``Store`` over SQLAlchemy Core: one implementation for SQLite and PostgreSQL.

``store`` defines what each call means, ``schema`` how a collection lies in tables,
``database`` why a write transaction cannot be overtaken.

Cost of an append to n collections: one transaction with one look at the owner, one
executemany for the n uppers and one for the updates. An upper is advanced only where it
is the expected one; fewer rows changed than asked for means a lost race. One that compacts
adds to that what ``folding`` says.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Self

from sqlalchemy import and_, bindparam, delete, false, insert, select, update

from reclock.durable import rules, schema
from reclock.durable.folding import Folding
from reclock.durable.prepared import Prepared
from reclock.durable.store import (
    BEGINNING,
    Append,
    CollectionState,
    Snapshot,
    UpperMismatch,
)
from reclock.errors import Corrupt
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from sqlalchemy import Connection, Engine

    from reclock.durable.database import Database
    from reclock.durable.rules import Sums
    from reclock.ids import CollectionId
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

_collection, _update = schema.collection, schema.update
_FRONTIERS = (_collection.c.id, _collection.c.version, _collection.c.since, _collection.c.upper)
_OF_ONE = select(*_FRONTIERS).where(_collection.c.id == bindparam("of"))
_ADVANCE = (
    update(_collection)
    .where(
        _collection.c.id == bindparam("at"),
        _collection.c.upper.is_not_distinct_from(bindparam("expected")),
    )
    .values(upper=bindparam("new"))
)


class SqlStore:
    """The collections in a database that this process owns."""

    def __init__(self, database: Database, engine: Engine) -> None:
        self._database = database
        self._advance = Prepared(_ADVANCE, engine.dialect)
        self._insert = Prepared(insert(_update), engine.dialect)
        self._frontiers = Prepared(_OF_ONE, engine.dialect)
        self._folding = Folding(engine.dialect)

    def open(self, collection: CollectionId, version: int) -> CollectionState:
        """Return the state of ``collection``, creating it if there is none."""
        with self._database.writing() as writer:
            found = _find(writer, collection)
            rules.check_version(collection, found.version if found else None, version)
            since, upper = (found.since, found.upper) if found else (BEGINNING, BEGINNING)
            if found is None:
                start = schema.column(BEGINNING)
                row = {"id": collection, "version": version, "since": start, "upper": start}
                writer.execute(insert(_collection), row)
            elif found.version < version:
                raised = update(_collection).where(_collection.c.id == collection)
                writer.execute(raised.values(version=version))
        return CollectionState(collection, version, since, upper)

    def state(self, collection: CollectionId) -> CollectionState:
        """Return the frontiers of ``collection``."""
        with self._database.reading() as reader:
            return _get(reader, collection)

    def collections(self, prefix: str = "") -> tuple[CollectionState, ...]:
        """Return the collections whose id begins with ``prefix``, sorted by id."""
        with self._database.reading() as reader:
            states = [schema.read_state(row) for row in reader.execute(select(*_FRONTIERS))]
        found = (state for state in states if state.collection.startswith(prefix))
        return tuple(sorted(found, key=lambda state: state.collection))

    def snapshot(self, collection: CollectionId) -> Snapshot:
        """Return all updates, with the frontiers of the same moment."""
        return self._read(collection, BEGINNING)

    def updates(self, collection: CollectionId, lower: Antichain[Timestamp]) -> Snapshot:
        """Return the updates beyond ``lower``."""
        snapshot = self._read(collection, lower)
        rules.check_readable(snapshot.state, lower)
        return snapshot

    def append(self, appends: Sequence[Append]) -> UpperMismatch | None:
        """Append to every collection, or to none and say whose upper was another."""
        rules.check_distinct(appends)
        if not appends:
            return None
        uppers = [
            {
                "at": append.collection,
                "expected": schema.column(append.expected_upper),
                "new": schema.column(append.new_upper),
            }
            for append in appends
        ]
        changed = [(append, rules.summed(append.updates)) for append in appends if append.updates]
        with self._database.lock:
            with self._database.writing() as writer:
                hit("durable.append.before")
                lost = self._advance.execute_many(writer, uppers) != len(appends)
                if lost:
                    writer.rollback()
                else:
                    rows = [self._rows(writer, append, sums) for append, sums in changed]
                    self._write(writer, [*chain.from_iterable(rows)])
                    hit("durable.commit.before")
            if lost:
                return self._mismatch(appends)
        hit("durable.commit.after")
        return None

    def compact(self, collection: CollectionId, since: Antichain[Timestamp]) -> None:
        """Advance since, and sum what it folds."""
        with self._database.writing() as writer:
            state = _get(writer, collection)
            rules.check_compaction(state, since)
            hit("durable.compact.before")
            self._write(writer, self._folding.fold(writer, state, since, {}))
            hit("durable.compact.folded")
        hit("durable.compact.after")

    def drop(self, collection: CollectionId) -> None:
        """Forget the collection whole; nothing happens if there is none."""
        with self._database.writing() as writer:
            writer.execute(delete(_update).where(_update.c.collection == collection))
            writer.execute(delete(_collection).where(_collection.c.id == collection))

    def check_owner(self) -> None:
        """Raise ``Fenced`` unless this process owns the store, now."""
        self._database.check_owner()

    def close(self) -> None:
        """Give the store up; nothing durable changes."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _rows(self, writer: Connection, append: Append, sums: Sums) -> list[schema.Row]:
        """Return the rows to insert for an append, of which ``sums`` are the updates."""
        if append.since is None:
            return schema.update_rows(append.collection, sums)
        (row,) = self._frontiers.all(writer, {"of": append.collection})
        state = schema.read_state(row)
        rules.check_compaction(state, append.since)
        return self._folding.fold(writer, state, append.since, sums)

    def _write(self, writer: Connection, rows: list[schema.Row]) -> None:
        if rows:
            self._insert.execute_many(writer, rows)

    def _read(self, collection: CollectionId, lower: Antichain[Timestamp]) -> Snapshot:
        """Return the updates stored at times beyond ``lower``, in one statement."""
        of = _update.c.collection == _collection.c.id
        if lower.is_closed:
            of = and_(of, false())
        elif lower != BEGINNING:
            of = and_(of, _update.c.time >= schema.column(lower))
        query = (
            select(*_FRONTIERS, _update.c.digest, _update.c.data, _update.c.time, _update.c.diff)
            .select_from(_collection.outerjoin(_update, of))
            .where(_collection.c.id == collection)
        )
        with self._database.reading() as reader:
            rows = reader.execute(query).all()
        if not rows:
            raise rules.unknown(collection)
        state = schema.read_state(rows[0])
        stored = schema.UpdateReader(state)
        found = [
            stored.read(digest, data, time, diff)
            for *_, digest, data, time, diff in rows
            if time is not None
        ]
        return Snapshot(state, tuple(sorted(found, key=lambda u: (u.time, u.data))))

    def _mismatch(self, appends: Sequence[Append]) -> UpperMismatch:
        """Return who lost the race; the caller holds the lock, so nothing moved since."""
        with self._database.writing() as writer:
            for append in appends:
                current = _get(writer, append.collection).upper
                if current != append.expected_upper:
                    return UpperMismatch(append.collection, current)
        message = "the durable store miscounts the uppers it advanced"
        raise Corrupt(message)


def _find(connection: Connection, collection: CollectionId) -> CollectionState | None:
    query = select(*_FRONTIERS).where(_collection.c.id == collection)
    row = connection.execute(query).first()
    return None if row is None else schema.read_state(row)


def _get(connection: Connection, collection: CollectionId) -> CollectionState:
    state = _find(connection, collection)
    if state is None:
        raise rules.unknown(collection)
    return state
