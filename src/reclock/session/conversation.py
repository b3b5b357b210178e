"""What statements ask of the session that runs them.

Tests: tests/test_layers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from reclock.session.speaker import Speaker
from reclock.sql.statement import CreateSink, CreateSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Table
    from reclock.engine.read import Readable
    from reclock.engine.staged_write import StagedWrite
    from reclock.engine.world import World
    from reclock.rows.result import Result
    from reclock.session.answer import Answer
    from reclock.session.backends import Backend
    from reclock.session.cursor import Cursors
    from reclock.session.described import Description, PreparedStatement
    from reclock.session.system import System
    from reclock.session.transaction.draft import Draft
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import Begin, Parsed, Statement
    from reclock.sql.statement.select import AsOf
    from reclock.sql.syntax.expression import Name
    from reclock.sql.types import Type
    from reclock.subscribe.subscription import Subscription

S = TypeVar("S", CreateSource, CreateSink)


class Conversation(Speaker, Protocol):
    """One session, as its statements know it."""

    @property
    def core(self) -> System:
        """The state that all sessions share."""
        ...

    @property
    def cursors(self) -> Cursors:
        """What DECLARE declared."""
        ...

    @property
    def prepared(self) -> dict[str, PreparedStatement]:
        """What is prepared, by name."""
        ...

    @property
    def backend(self) -> Backend:
        """What others see of it."""
        ...

    def rights(
        self, statement: Statement, parameters: tuple[object, ...], /
    ) -> Callable[[World], None]:
        """Return what refuses a statement that goes on, once the role may not do that any more."""
        ...

    def check_rights(
        self, statement: Statement, parameters: tuple[object, ...], draft: Draft, /
    ) -> None:
        """Refuse a statement of a transaction that the role may not run."""
        ...

    def admitted_files(self, statement: S, /) -> tuple[S, str | None]:
        """Return a statement whose files are where the session may have them, and that root."""
        ...

    def opened(self, given: Subscription | Answer, /) -> None:
        """Remember what gives rows and holds something, to end it with the session."""
        ...

    def begin(self, statement: Begin, /) -> None:
        """Begin a transaction."""
        ...

    def end(self, *, keep: bool) -> None:
        """End the transaction, if there is one; with ``keep`` what it has SET stays."""
        ...

    def forget(self, name: str | None, /) -> None:
        """Forget a prepared statement; None is all that have a name."""
        ...

    def set(self, name: str | None, value: str | None, /, *, local: bool) -> None:
        """Set a setting of the session, or with ``local`` of its transaction."""
        ...

    def readable(
        self, plan_of: Callable[[Catalog], QueryPlan], as_of: AsOf | None, /
    ) -> AbstractContextManager[Readable]:
        """Give a world in which a query can be answered: the transaction's, or the latest."""
        ...

    def copied(
        self,
        name: Name,
        rows: Callable[[Table, Catalog], list[pa.Array]],
        count: int,
        staged: StagedWrite | None = None,
        /,
    ) -> Result:
        """Write what was copied into a table, as a statement of its own; or what was ``staged``."""
        ...

    def description_of(self, parsed: Parsed, declared: Sequence[Type], /) -> Description:
        """Return what a statement takes and gives."""
        ...
