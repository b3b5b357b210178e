"""A session: settings and a transaction of its own, and statements one after the other.

Any number of threads may use one session: its statements take turns. Those of different
sessions run at the same time; a thread that must not wait for another has its own session.

Statements of one text run in order; each is atomic by itself, unless BEGIN made them part of
a transaction (``transaction``), and the result is that of the last. An error ends the text
where it stands; outside of a transaction, what ran before it stays done, and the session can
be used on. Closing a session rolls its transaction back and ends its subscriptions.

Tests: tests/session/test_session.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, Self
from weakref import WeakSet

from reclock.catalog.settings import SessionSettings
from reclock.dataflow.point import COLD
from reclock.engine.interrupt import Interrupt
from reclock.engine.meters import kind_of
from reclock.engine.read import readable
from reclock.engine.witness import witness
from reclock.errors import (
    ExpressionFailed,
    InvalidSyntax,
    InvalidTransactionState,
    StatementError,
    StorageError,
)
from reclock.rows.given import columns_from
from reclock.rows.result import Result
from reclock.session.answer import Answer, CopyOut
from reclock.session.authorization import authorize, rights_of
from reclock.session.copy_in import CopyIn
from reclock.session.cursor import Cursors
from reclock.session.description import describe
from reclock.session.dml.defaults import Defaults
from reclock.session.dml.target import target_table
from reclock.session.drawn_numbers import SessionNumbers
from reclock.session.functions import is_of_session, with_session
from reclock.session.look_up import look_up_known
from reclock.session.plans import plan_once
from reclock.session.prepared import described_execute, executed, unknown_statement
from reclock.session.statements import run
from reclock.session.statements.context import Context
from reclock.session.statements.copy import copy_lines
from reclock.session.statements.cursor import fetched
from reclock.session.statements.insert import insert_into
from reclock.session.statements.select import answer
from reclock.session.statements.subscribe import open_subscription
from reclock.session.transaction.transaction import Transaction, refuse_write
from reclock.sql.as_of import with_times
from reclock.sql.depth import too_deep
from reclock.sql.parse import parse_statement
from reclock.sql.plan.build.parameter import Placeholder
from reclock.sql.statement import (
    AlterRetainHistory,
    AlterSource,
    CatalogQuery,
    Copy,
    CopyFrom,
    CreateIndex,
    CreateSink,
    CreateSource,
    CreateView,
    Drop,
    Execute,
    Fetch,
    Grant,
    Insert,
    RefreshSource,
    SelectStatement,
    Subscribe,
)
from reclock.sql.syntax.expression import Name
from reclock.sql.zone import DEFAULT, in_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Table
    from reclock.engine.read import Readable
    from reclock.engine.staged_write import StagedWrite
    from reclock.engine.world import World
    from reclock.session.described import Description, PreparedStatement
    from reclock.session.file_roots import FileRoots, S
    from reclock.session.look_up import Answered
    from reclock.session.system import System
    from reclock.session.transaction.draft import Draft
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import Begin, Parsed, Statement
    from reclock.sql.statement.select import AsOf
    from reclock.sql.types import Type
    from reclock.subscribe.subscription import Subscription


_OWNED: Final = (AlterRetainHistory, AlterSource, CreateView, Drop, Grant, RefreshSource)
"""What only the owner of an object may do."""

_KEPT: Final = (CreateIndex, CreateSink, CreateSource, Subscribe)
"""What is kept is in UTC, whatever the session's zone is; so are queries of views."""


class Session:
    """One user's settings and transaction over a core that all share.

    ``role`` is the user's role; None is the user who opened the database, who may do everything.
    ``files`` says which files it may name; None is all.
    """

    def __init__(
        self,
        core: System,
        role: str | None = None,
        files: FileRoots | None = None,
        pid: int | None = None,
    ) -> None:
        self.core = core
        self.role: Final[str | None] = role
        self._files = files
        self._settings = SessionSettings(core.settings)
        self._transaction: Transaction | None = None
        self._open: WeakSet[Subscription | Answer] = WeakSet()
        self._turns = threading.Lock()
        self._closed = False
        self.numbers: Final = SessionNumbers()
        """What sequences gave it last."""
        self.cursors: Final = Cursors()
        """What DECLARE declared."""
        self.prepared: Final[dict[str, PreparedStatement]] = {}
        """What PREPARE, or a server for its client, has prepared, by name."""
        self.interrupt: Final = Interrupt()
        """Stops the statement under way, from any thread."""
        self.backend: Final = core.backends.add(self, pid)
        """What others see of it."""

    @property
    def settings(self) -> SessionSettings:
        """The settings in force: the transaction's, if there is one."""
        return self._settings if self._transaction is None else self._transaction.settings

    @property
    def is_superuser(self) -> bool:
        """Whether it may do everything."""
        role = None if self.role is None else self.core.world.roles.find(self.role)
        return self.role is None or (role is not None and role.superuser)

    @property
    def transaction(self) -> Transaction | None:
        """What BEGIN began; None if each statement is a transaction by itself."""
        return self._transaction

    # What users call.

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Result:
        """Run all statements of ``sql`` and return the result of the last one.

        ``parameters`` are the values of $1, $2, ….
        """
        result = Result("")
        with self._turn(sql):
            for parsed in self.core.plans.parsed(sql):
                with self._meant(parsed, tuple(parameters)) as (one, values):
                    statement = self._admitted(one.statement, values, one.text)
                    result = self._run(Context(self, one.text, values), statement)
        return result

    # What servers call.

    def parsed(self, sql: str) -> tuple[Parsed, ...]:
        """Return the statements of a text."""
        return self.core.plans.parsed(sql)

    def known(self, sql: str) -> tuple[Parsed, ...] | None:
        """Return the same if it is known, without parsing anything."""
        return self.core.plans.known_text(sql)

    def known_description(self, parsed: Parsed, declared: tuple[Type, ...]) -> Description | None:
        """Return what a query takes and gives, if that is known, and that the role may run it."""
        world, plans = self.core.world, self.core.plans
        if self.role is not None and not plans.may(
            parsed.text, self.role, world.catalog, world.roles
        ):
            return None
        return plans.description(parsed.text, declared, world.catalog)

    def describe(self, parsed: Parsed, declared: Sequence[Type] = ()) -> Description:
        """Return what a statement takes and gives; ``declared`` are types of its parameters."""
        with self._turn():
            return self.description_of(parsed, declared)

    def description_of(self, parsed: Parsed, declared: Sequence[Type]) -> Description:
        """Return the same, as part of a statement; refuse what the role may not run."""
        if isinstance(parsed.statement, Execute):
            return described_execute(Context(self, parsed.text), parsed, declared)
        described = self._described(parsed, tuple(declared))
        values = [Placeholder(k) for k in described.parameters]
        self._authorize(with_session(parsed.statement, parsed.text, self), values, parsed.text)
        return described

    def look_up(self, parsed: Parsed, parameters: Sequence[object], *, patient: bool) -> Answered:
        """Answer a look-up that is known; without patience it waits for nothing.

        None if it is to be run as any other statement, ``COLD`` if it takes patience.
        """
        if patient:
            with self._turn():
                return self._looked_up(parsed, parameters, patient=True)
        if not self._turns.acquire(blocking=False):
            return None
        try:
            if self._closed:
                return None
            with in_zone(self.settings.time_zone):
                return self._looked_up(parsed, parameters, patient=False)
        finally:
            self._turns.release()

    def _looked_up(
        self, parsed: Parsed, parameters: Sequence[object], *, patient: bool
    ) -> Answered:
        begun = perf_counter()
        found = look_up_known(self, parsed, parameters, patient=patient)
        if found is not None and found != COLD:
            self.core.meters.took("look_up", perf_counter() - begun)
        return found

    def run(
        self, parsed: Parsed, parameters: Sequence[object] = ()
    ) -> Result | Answer | Subscription | CopyOut | CopyIn:
        """Run one statement; what may have many rows gives them bit by bit."""
        with self._turn(), self._meant(parsed, tuple(parameters)) as (one, values):
            statement = self._admitted(one.statement, values, one.text)
            context = Context(self, one.text, values)
            if isinstance(statement, CopyFrom):
                return CopyIn(context, statement)
            if isinstance(statement, Copy):
                return CopyOut(_opened(context, statement.of), statement.format)
            if isinstance(statement, SelectStatement | CatalogQuery | Subscribe):
                return _opened(context, statement)
            if isinstance(statement, Fetch):
                return fetched(context, statement)
            return self._run(context, statement)

    def copied(
        self,
        name: Name,
        rows: Callable[[Table, Catalog], list[pa.Array]],
        count: int,
        staged: StagedWrite | None = None,
    ) -> Result:
        """Write what was copied into a table, as a statement of its own; or what was ``staged``."""
        with self._turn():
            self._admitted(CopyFrom(name), ())
            if staged is not None:
                with Context(self, "").writing() as world:
                    table = target_table(name, world.catalog)
                    return Result(f"COPY {count}", timestamp=staged.commit(table))
            timestamp = insert_into(Context(self, ""), name, rows).timestamp if count else None
            return Result(f"COPY {count}", timestamp=timestamp)

    def abort(self) -> None:
        """Abort the transaction, if there is one: something went wrong after a statement."""
        with self._turns:
            if self._transaction is not None:
                self._transaction.abort()

    # What Python programs call.

    def insert(self, table: str, rows: object) -> Result:
        """Add many rows at once: a list of tuples, an Arrow table, or a DataFrame.

        Tuples are matched by position, tables and frames by column name.
        """
        name = Name(tuple(table.split(".")))
        with self._turn(), self.core.meters.statement("insert"):
            self._admitted(Insert(name, (), None), ())
            defaults = Defaults(self)

            def columns(target: Table, catalog: Catalog) -> list[pa.Array]:
                def default(table: Table, at: int, count: int) -> pa.Array:
                    return defaults.column(table, at, count, catalog)

                return columns_from(rows, target, default)

            return insert_into(Context(self, ""), name, columns)

    @contextmanager
    def reading(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Readable]:
        """Give a world in which the one query of ``sql`` can be answered, and the time."""
        with self._turn():
            statement = self._admitted(parse_statement(sql), parameters, sql)
            if not isinstance(statement, SelectStatement):
                message = "only a query can be a DataFrame"
                raise InvalidSyntax(message, code="42809", hint="write SELECT …")
            plan_of = partial(plan_once, statement.query, tuple(parameters))
            with self.readable(plan_of, statement.as_of) as at:
                yield at

    def subscribe(
        self, sql: str, parameters: Sequence[object] = (), *, timeout: float | None = None
    ) -> Subscription:
        """Follow an object or a query: ``for u in …: u.timestamp, u.diff, u.row, u.progressed``.

        Iterating waits for what comes, ``timeout`` seconds at a time (None: for ever).
        """
        with self._turn(), self.core.meters.statement("subscribe"):
            statement = self._admitted(parse_statement(sql), parameters, sql)
            if not isinstance(statement, Subscribe):
                message = "not a SUBSCRIBE"
                raise InvalidSyntax(message, code="42809", hint="use execute(…)")
            context = Context(self, sql, tuple(parameters))
            return open_subscription(context, statement, timeout)

    def copy(
        self, sql: str, parameters: Sequence[object] = (), *, timeout: float | None = None
    ) -> Iterator[str]:
        """Run COPY … TO STDOUT: return the lines, each with its line end.

        ``timeout`` is that of ``subscribe``, for COPY (SUBSCRIBE …).
        """
        with self._turn():
            statement = self._admitted(parse_statement(sql), parameters, sql)
            if not isinstance(statement, Copy):
                message = "not a COPY"
                raise InvalidSyntax(message, code="42809", hint="use execute(…)")
            return copy_lines(Context(self, sql, tuple(parameters)), statement, timeout)

    def close(self) -> None:
        """End the session, after the statement under way, with its transaction and subscriptions.

        The transaction is rolled back.
        """
        with self._turns:
            self._closed = True
            self.core.backends.remove(self.backend)
            self.end(keep=False)
            self.cursors.close_all()
        for given in tuple(self._open):
            given.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # What statements call.

    @contextmanager
    def readable(
        self, plan_of: Callable[[Catalog], QueryPlan], as_of: AsOf | None
    ) -> Iterator[Readable]:
        """Give a world in which a query can be answered: the transaction's, or the latest."""
        if self._transaction is None:
            with readable(
                self.core,
                plan_of,
                self._settings,
                as_of,
                role=self.role,
                from_log=True,
                interrupt=self.interrupt,
            ) as at:
                yield at
        else:
            with self._transaction.readable(plan_of, as_of, self.role, self.interrupt) as at:
                yield at

    def rights(
        self, statement: Statement, parameters: tuple[object, ...]
    ) -> Callable[[World], None]:
        """Return what refuses a statement that goes on, once the role may not do that any more."""
        return rights_of(self.role, statement, parameters)

    def check_rights(
        self, statement: Statement, parameters: tuple[object, ...], draft: Draft
    ) -> None:
        """Refuse a statement of a transaction that the role may not run."""
        if self.role is not None:
            authorize(draft.roles, draft.catalog, self.role, statement, parameters)

    def admitted_files(self, statement: S) -> tuple[S, str | None]:
        """Return a statement whose files are where the session may have them, and that root."""
        return (statement, None) if self._files is None else self._files.admitted(statement)

    def opened(self, given: Subscription | Answer) -> None:
        """Remember what gives rows and holds something, to end it with the session."""
        self._open.add(given)

    def begin(self, statement: Begin) -> None:
        """Begin a transaction."""
        self._transaction = Transaction(self.core, self._settings, statement)

    def end(self, *, keep: bool) -> None:
        """End the transaction, if there is one; with ``keep`` what it has SET stays."""
        transaction, self._transaction = self._transaction, None
        self.cursors.close_all(held=False)
        if transaction is not None:
            transaction.release()
            if keep:
                self._settings = transaction.kept

    def forget(self, name: str | None) -> None:
        """Forget a prepared statement; None is all that have a name."""
        if name is None:
            for known in [known for known in self.prepared if known]:
                del self.prepared[known]
        elif self.prepared.pop(name, None) is None:
            raise unknown_statement(name)

    def set(self, name: str | None, value: str | None, *, local: bool) -> None:
        """Set a setting of the session, or with ``local`` of its transaction.

        A value of None resets it; a name of None resets all.
        """
        if self._transaction is not None:
            self._transaction.set(name, value, local=local)
        elif local:
            message = "SET LOCAL can only be used in a transaction"
            raise InvalidTransactionState(message, code="25P01", hint="write SET, or BEGIN first")
        else:
            self._settings.set(name, value)

    def _admitted(
        self, statement: Statement, parameters: Sequence[object], text: str = ""
    ) -> Statement:
        """Return a statement to run, if the transaction and the role's rights allow it.

        ``text`` is where it comes from: it has its times, and what functions of the session give.
        """
        if self._transaction is not None:
            self._transaction.admit(statement)
        else:
            refuse_write(statement, self._settings)
        known = with_session(statement, text, self)
        self._authorize(known, parameters, text)
        return with_times(known, tuple(parameters))

    def _described(self, parsed: Parsed, declared: tuple[Type, ...]) -> Description:
        """Return what a statement takes and gives, from what is known if it is a query."""
        known = replace(parsed, statement=with_session(parsed.statement, parsed.text, self))
        if not isinstance(known.statement, SelectStatement) or is_of_session(parsed.text):
            return describe(Context(self, parsed.text), known, declared)
        context = Context(self, parsed.text)
        catalog = context.catalog
        found = self.core.plans.description(parsed.text, declared, catalog)
        if found is None:
            found = describe(context, known, declared)
            if context.catalog is catalog:  # nothing has changed in between
                self.core.plans.describe(parsed.text, declared, catalog, found)
        return found

    def _authorize(self, statement: Statement, parameters: Sequence[object], text: str) -> None:
        if self.role is None:
            return
        query = text if isinstance(statement, SelectStatement) else ""
        with self.core.reading() as world:
            catalog = world.catalog
            if self._transaction is not None:
                catalog = self._transaction.catalog or catalog
            if not self.core.plans.may(query, self.role, catalog, world.roles):
                authorize(world.roles, catalog, self.role, statement, tuple(parameters))
                self.core.plans.allow(query, self.role, catalog, world.roles)

    def _run(self, context: Context, statement: Statement) -> Result:
        """Run a statement; owners are looked up after the catalog lock is taken."""
        if self.role is None or not isinstance(statement, _OWNED):
            return run(context, statement)

        def allowed() -> None:
            self._authorize(statement, context.parameters, context.text)

        return run(replace(context, allowed=allowed), statement)

    @contextmanager
    def _meant(
        self, parsed: Parsed, parameters: tuple[object, ...]
    ) -> Iterator[tuple[Parsed, tuple[object, ...]]]:
        """Give what is to be run, and measure it: EXECUTE is what it names, with its values."""
        if not isinstance(parsed.statement, Execute):
            kept = isinstance(parsed.statement, _KEPT)
            with (
                self.core.meters.statement(kind_of(parsed.statement)),
                in_zone(DEFAULT if kept else self.settings.time_zone),
            ):
                yield parsed, parameters
            return
        if self._transaction is not None:
            self._transaction.admit(parsed.statement)
        context = Context(self, parsed.text, parameters)
        named, values = executed(context, parsed.statement)
        try:
            with self.core.meters.statement(kind_of(named.statement)):
                yield named, values
        except StatementError as error:
            error.position = None  # a place in another text
            raise

    @contextmanager
    def _turn(self, query: str | None = None) -> Iterator[None]:
        """Wait for the statements before; an error inside aborts the transaction.

        ``query`` is what others see of it, unless a server tells them.
        """
        with self._turns:
            if self._closed:
                message = "the session is closed"
                raise StorageError(message, code="08003")
            if query is not None:
                self.interrupt.clear()
                self.backend.begin(query)
            try:
                with in_zone(self.settings.time_zone):
                    yield
            except BaseException as error:
                if isinstance(error, ExpressionFailed):
                    witness(self.core, self.role, error, self.interrupt)
                if self._transaction is not None:
                    self._transaction.abort()
                if isinstance(error, RecursionError):
                    raise too_deep() from error
                raise
            finally:
                if query is not None:
                    self.backend.end()


def _opened(
    context: Context, statement: SelectStatement | CatalogQuery | Subscribe
) -> Answer | Subscription:
    if isinstance(statement, Subscribe):
        return open_subscription(context, statement, None)
    return answer(context, statement)
