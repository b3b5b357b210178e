"""The database: a state directory, opened in the user's process.

One process owns a state directory; a second one is refused with the owner's id. Any number of
threads may use one ``Database``, each best with a ``session`` of its own: writes, ticks and changes
of the catalog come one after the other; reads run concurrently. Calls on the database itself share
one session, and take turns. After an error the database stays usable. Opening reads back exactly
what was durable: nothing depends on how the last process ended.

Tests: tests/session/test_database.py.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

from reclock.clock import SystemClock
from reclock.connectors.kafka.client import KafkaCluster
from reclock.engine.catalog_change import reconcile
from reclock.engine.loop import Loop
from reclock.engine.place import Place, open_place
from reclock.engine.tick import tick
from reclock.errors import Error, StorageError
from reclock.export.outlets import KAFKA_OUTLETS
from reclock.ingest.postgres.slots import left_behind, of_failed
from reclock.session.check import check
from reclock.session.facts import Facts
from reclock.session.pipeline.failures import fatal
from reclock.session.pipeline.plan import plan_pipeline
from reclock.session.pipeline.rehearse import rehearse
from reclock.session.session import Session
from reclock.session.system import System
from reclock.spark.engine import SparkEngine
from reclock.sql import depth
from reclock.time.pace import Own

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from reclock.catalog.roles import Roles
    from reclock.clock import Clock
    from reclock.dataflow.job.load import Load
    from reclock.engine.engine import Engine
    from reclock.engine.meters import Meters
    from reclock.engine.parts import Progress
    from reclock.engine.world import World
    from reclock.export.connect import Outlets
    from reclock.ingest.connect import Clusters
    from reclock.ingest.postgres.slots import Noted
    from reclock.rows.result import Result
    from reclock.session.backends import Backends
    from reclock.session.check import Finding
    from reclock.session.file_roots import FileRoots
    from reclock.session.pipeline.plan import Step
    from reclock.spark.early import EarlySpark
    from reclock.subscribe.subscription import Subscription
    from reclock.time.timestamp import Timestamp

_FRAMES: Final = 64


class Database:
    """A database; use it as a context manager, or ``close`` it."""

    def __init__(
        self,
        path: str | os.PathLike[str] | Place,
        engine: Engine,
        *,
        clock: Clock | None = None,
        background: bool = True,
        clusters: Clusters = KafkaCluster,
        outlets: Outlets = KAFKA_OUTLETS,
    ) -> None:
        depth.allow()
        place = path if isinstance(path, Place) else open_place(path)
        self._where = "elsewhere" if isinstance(path, Place) else f"in {os.fspath(path)}"
        self._store = place.records
        self._engine = engine
        self._closed = False
        self._frames: deque[World] = deque()
        with ExitStack() as undo:
            undo.callback(self._store.close)
            self._core = System(
                self._store, place.segments, engine, clock or SystemClock(),
                clusters=clusters, outlets=outlets, is_copy=place.is_copy,
            )  # fmt: skip
            undo.callback(self._core.intakes.close)
            if background:
                self._core.intakes.start()  # before anything ticks: ticks wait for no source
            reconcile(self._core)
            undo.pop_all()
        self._sessions: WeakSet[Session] = WeakSet()
        self._session = self.session()
        if background:
            self._core.loop = Loop(self._core)
            self._core.exporters.start()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Result:
        """Run the statements of ``sql`` and return the result of the last one.

        ``parameters`` are the values of $1, $2, ….
        """
        self._check_open()
        return self._session.execute(sql, parameters)

    def insert(self, table: str, rows: object) -> Result:
        """Add many rows at once: a list of tuples, an Arrow table, or a DataFrame.

        Tuples are matched by position, tables and frames by column name.
        """
        self._check_open()
        return self._session.insert(table, rows)

    @property
    def backends(self) -> Backends:
        """Which sessions there are."""
        return self._core.backends

    def session(
        self,
        role: str | None = None,
        *,
        files: FileRoots | None = None,
        pid: int | None = None,
    ) -> Session:
        """Return a new session; use it as a context manager, or ``close`` it.

        It may do what ``role`` may; None is you, who may do everything. Sources and sinks may be
        files that are in ``files``; None is anywhere. ``pid`` is a number from ``backends``.
        """
        self._check_open()
        session = Session(self._core, role, files, pid)
        self._sessions.add(session)
        return session

    def subscribe(
        self, sql: str, parameters: Sequence[object] = (), *, timeout: float | None = None
    ) -> Subscription:
        """Follow an object or a query: ``for u in …: u.timestamp, u.diff, u.row, u.progressed``.

        Iterating waits for what comes, ``timeout`` seconds at a time (None: for ever).
        """
        self._check_open()
        return self._session.subscribe(sql, parameters, timeout=timeout)

    def copy(
        self, sql: str, parameters: Sequence[object] = (), *, timeout: float | None = None
    ) -> Iterator[str]:
        """Run COPY … TO STDOUT: return the lines, each with its line end."""
        self._check_open()
        return self._session.copy(sql, parameters, timeout=timeout)

    def tick(self) -> dict[str, Timestamp]:
        """Run one tick of every timeline; return the new upper of each, by its name."""
        self._check_open()
        self._core.subscribers.sweep()
        uppers = {}
        world = self._core.world
        for pace in sorted(world.timelines, key=world.catalog.order):
            upper = tick(self._core, pace, regular=True).upper
            if not isinstance(pace, Own):
                uppers[str(pace)] = upper
            self._core.exporters.write(pace)
        return uppers

    def dataframe(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Return a query as a Spark DataFrame, at the time the query would be answered at.

        It can be used until the database is closed, or 64 others were made after it.
        """
        self._check_open()
        with self._session.reading(sql, parameters) as at:
            made = at.dataframe(self._core)
            self._keep(at.world)
            return made

    def left_behind_slots(self) -> list[tuple[Noted, bool | None]]:
        """Return the replication slots that no source has, and whether their servers have them."""
        return left_behind(self._core.intakes.slots, self._core.world.catalog)

    def failed_slots(self) -> list[Noted]:
        """Return the replication slots of sources that have failed and are not dropped."""
        return of_failed(self._core.world)

    def check(self) -> list[Finding]:
        """Read all of the state and return what is wrong with it: nothing, if it is whole."""
        self._check_open()
        return check(self._core)

    def plan(self, text: str) -> list[Step]:
        """Return what applying a file of statements would do; a conflict is an error."""
        self._check_open()
        return plan_pipeline(text, self._core.world.catalog, self.roles)

    def rehearse(self, steps: Sequence[Step]) -> None:
        """Plan the steps of a file one after the other, and raise what they would; run none."""
        self._check_open()
        rehearse(steps, self._core.world.catalog, self._core.intakes.clusters)

    @property
    def roles(self) -> Roles:
        """Who may log in, and who may do what."""
        return self._core.world.roles

    @cached_property
    def facts(self) -> Facts:
        """How everything does, for metrics, health and pictures."""
        return Facts(self._core)

    @property
    def meters(self) -> Meters:
        """What this process has counted."""
        return self._core.meters

    @property
    def now_ms(self) -> int:
        """The time of the database's clock."""
        return self._core.clock.now_ms()

    @property
    def interval_ms(self) -> int:
        """How often it ticks."""
        return self._core.settings.timestamp_interval_ms

    @property
    def merging(self) -> int:
        """How many merges are under way."""
        return self._core.merger.under_way

    @property
    def loading(self) -> Load | None:
        """How far the first load of a large view is, in parts; None: there is none."""
        return self._engine.load

    @property
    def preparing(self) -> tuple[Progress, ...]:
        """How far the objects are that statements are filling."""
        return tuple(prepared.progress for prepared in tuple(self._core.preparing))

    @property
    def failure(self) -> Error | None:
        """Why nothing goes on any more in the background; None: it does."""
        return fatal(self._core)

    def close(self) -> None:
        """Stop ticking and give everything back; what is durable stays as it is."""
        if self._closed:
            return
        self._closed = True
        self._core.subscribers.close()
        if self._core.loop is not None:
            self._core.loop.stop()
        self._core.flights.cancel()
        self._core.intakes.close()
        self._core.exporters.close()
        for session in tuple(self._sessions):
            session.close()
        self._core.merger.close()
        self._core.expirations.close()
        self._core.pg.close()
        with suppress(Error):  # then they have a gap
            self._core.sequences.close()
        with self._core.lock:
            self._store.close()
        self._engine.close()

    def __repr__(self) -> str:
        """Say for people what it is, and what is in it."""
        if self._closed:
            return f"<reclock database {self._where}, closed>"
        kinds = Counter(item.kind for item in self._core.world.catalog.items.values())
        listed = ", ".join(f"{n} {_plural(kind, n)}" for kind, n in sorted(kinds.items()))
        return f"<reclock database {self._where}: {listed or 'empty'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _keep(self, world: World) -> None:
        """Keep the segments that a DataFrame may still read."""
        self._core.pin(world)
        self._frames.append(world)
        if len(self._frames) > _FRAMES:
            self._core.unpin(self._frames.popleft())

    def _check_open(self) -> None:
        if self._closed:
            message = "the database is closed"
            raise StorageError(message, code="08003")


def _plural(kind: str, count: int) -> str:
    if count == 1:
        return kind
    return f"{kind}es" if kind.endswith("x") else f"{kind}s"


def open_database(
    path: str | os.PathLike[str],
    *,
    store: str | None,
    meta: str | None,
    clock: Clock | None,
    background: bool,
    early: EarlySpark,
) -> Database:
    """Open the database in ``path`` with Spark as its engine."""
    with ExitStack() as undo:
        undo.callback(early.close)
        place = open_place(path, store, meta)  # which the database closes, if it does not open
        engine = SparkEngine(place.segments, early=early)
        database = Database(place, engine, clock=clock, background=background)
        database._where = f"in {os.fspath(path)}"  # noqa: SLF001 - ours
        undo.pop_all()
    return database
