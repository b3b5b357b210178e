"""The replication slots that this database has made or may have made, noted before they are made.

A slot keeps the log of its server as long as it exists, so none may be forgotten. Its name, and how
to reach its server, are durable before the source is, and are removed when the slot is dropped. So
after any crash::

    noted, with a source        it is that source's
    noted, without one          it was left behind, or never made: ``left_behind``

``DROP SOURCE`` drops the slot after the source is gone. If the server does not answer then, the
slot stays noted: the next start of the database tries again, and ``reclock doctor`` names it. So
does it name the slots of sources that have failed, which are kept until these are dropped.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Source
from reclock.connectors.postgres import slot
from reclock.connectors.postgres.connection import Connection
from reclock.durable.keyed import Contents
from reclock.errors import Error, SourceUnavailable
from reclock.failpoints import hit
from reclock.ids import CollectionId
from reclock.secret import Secret
from reclock.sql.statement.source import PostgresConnection
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.durable.keyed import Json
    from reclock.durable.store import Store
    from reclock.engine.world import World

COLLECTION: Final = CollectionId("slots")
VERSION: Final = 1
IN_USE: Final = "55006"
_PATIENCE: Final = 10.0
"""Seconds to wait for a slot to be let go of by the session that read it."""

LOG: Final = logging.getLogger("reclock.source")


@dataclass(frozen=True)
class Noted:
    """A slot, and how to get at its server."""

    name: str
    connection: Connection
    source: str

    @property
    def record(self) -> Json:
        """What is stored of it."""
        password = self.connection.password
        return {
            "connection": self.connection.text, "source": self.source,
            "password": None if password is None else password.reveal(),
        }  # fmt: skip


def connection_of(source: Source) -> Connection:
    """Return how to get at the server of a source."""
    given = source.statement.connection
    assert isinstance(given, PostgresConnection)
    return connection_to(given)


def connection_to(given: PostgresConnection) -> Connection:
    """Return how to get at the server that a statement names."""
    password = given.password
    return Connection(given.connection, None if password is None else Secret(password))


class Slots:
    """The slots that are noted in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[Noted]:
        """Return every slot that is noted."""
        if not any(s.collection == COLLECTION for s in self._store.collections(str(COLLECTION))):
            return []
        found = Contents.read(self._store.snapshot(COLLECTION)).values()
        return [
            Noted(
                name,
                Connection(
                    record["connection"],
                    None if record["password"] is None else Secret(record["password"]),
                ),
                record["source"],
            )
            for name, record in found.items()
        ]

    def left_behind(self, catalog: Catalog) -> list[Noted]:
        """Return the slots that are noted and are no source's."""
        kept = {source.facts.get("slot") for source in catalog.of_kind(Source)}
        return [noted for noted in self.all() if noted.name not in kept]

    def note(self, noted: Noted) -> None:
        """Write down a slot that is about to be made."""
        self._change({noted.name: noted.record})
        hit("postgres.slot.noted")

    def forget(self, name: str) -> None:
        """Remove a slot that is gone."""
        if any(noted.name == name for noted in self.all()):
            self._change({name: None})

    def drop(self, noted: Noted, patience: float = _PATIENCE) -> None:
        """Drop a slot and forget it; raise if the server does not let us."""
        deadline = monotonic() + patience
        hit("postgres.slot.drop.before")
        while True:
            try:
                slot.drop(noted.connection, noted.name)
                break
            except SourceUnavailable as error:
                if error.code != IN_USE or monotonic() > deadline:
                    raise
                sleep(0.1)
        hit("postgres.slot.drop.after")
        self.forget(noted.name)

    def sweep(self, catalog: Catalog) -> None:
        """Drop what was left behind, as far as servers answer."""
        for noted in self.left_behind(catalog):
            try:
                self.drop(noted, patience=1.0)
            except Error as error:
                LOG.warning(
                    'replication slot "%s" was left behind and cannot be dropped: %s',
                    noted.name, error.message,
                )  # fmt: skip

    @staticmethod
    def is_there(noted: Noted) -> bool | None:
        """Return whether a slot is at its server; None if that does not answer."""
        try:
            session = noted.connection.sql()
        except Error:
            return None
        try:
            return slot.state_of(session, noted.name) is not None
        finally:
            session.close()

    def _change(self, changes: dict[str, Json | None]) -> None:
        self._store.open(COLLECTION, VERSION)
        while True:
            contents = Contents.read(self._store.snapshot(COLLECTION))
            upper = contents.state.upper.element().step()
            append, _ = contents.change(changes, Antichain.of(upper))
            if self._store.append([append]) is None:
                return


def of_failed(world: World) -> list[Noted]:
    """Return the slots of sources that will never be read again: their servers keep the log."""
    return [
        Noted(source.facts["slot"], connection_of(source), source.name)
        for source in world.catalog.of_kind(Source)
        if "slot" in source.facts and world.of(source).bindings[source.id].remap.is_sealed
    ]


def left_behind(slots: Slots, catalog: Catalog) -> list[tuple[Noted, bool | None]]:
    """Return the slots that no source has, each with whether it is at its server."""
    return [(noted, slots.is_there(noted)) for noted in slots.left_behind(catalog)]
