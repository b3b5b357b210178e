"""An embedded DuckDB with PostgreSQL's catalog, at one version of ours.

It is in memory, has no access to files or the network, no extensions, one thread and little
memory; its configuration is locked. It gets what a query names when a query first does, so
``SELECT … FROM pg_class`` makes one table. Texts come from ``reclock.sql.pg.translate`` alone.

Cost: about 15 ms for a new version, then a few milliseconds per relation and query. Any thread
may ask; each query has a cursor of its own.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import duckdb

from reclock.errors import StatementTimeout
from reclock.server.pg_catalog.failure import is_interrupt, translated
from reclock.server.pg_catalog.lookups import LOOKUP_ROWS
from reclock.server.pg_catalog.row import table_of
from reclock.server.pg_catalog.rows import ROWS
from reclock.sql.pg.functions import LOOKUPS, with_needed
from reclock.sql.pg.relations import PG_RELATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from reclock.engine.interrupt import Interrupt
    from reclock.server.pg_catalog.objects import Objects
    from reclock.sql.statement import CatalogQuery

_OPTIONS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "max_temp_directory_size": "0KB",
    "memory_limit": "256MiB",
    "python_enable_replacements": "false",
    "threads": "1",
}
_SCHEMAS: Final = {"pg_catalog": "pgc", "information_schema": "infs"}


class PgCatalog:
    """PostgreSQL's catalog at one version of ours."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._lock = threading.Lock()
        self._made: set[str] = set()
        self._database = duckdb.connect(":memory:", config=_OPTIONS)
        for schema in (*_SCHEMAS.values(), "lookup", "fn"):
            self._database.execute(f"CREATE SCHEMA {schema}")
        self._database.execute("SET lock_configuration = true")

    @contextmanager
    def ask(
        self,
        query: CatalogQuery,
        given: Mapping[str, object],
        interrupt: Interrupt,
        timeout: float | None,
    ) -> Iterator[duckdb.DuckDBPyRelation]:
        """Give a query that is understood; what is computed in the block can be interrupted."""
        cursor = self._cursor(query)
        timer = None if timeout is None else threading.Timer(timeout, cursor.interrupt)
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            with interrupt.waking(cursor.interrupt):
                yield cursor.sql(query.text, params=dict(given) or None)
        except (duckdb.Error, OSError) as cause:
            if is_interrupt(cause):
                interrupt.check()
                message = "canceling statement due to statement timeout"
                raise StatementTimeout(message, hint="raise statement_timeout") from cause
            raise translated(cause) from cause
        finally:
            if timer is not None:
                timer.cancel()
            cursor.close()

    def _cursor(self, query: CatalogQuery) -> duckdb.DuckDBPyConnection:
        """Return a connection that has all that a query needs."""
        with self._lock:
            for schema, name in sorted(query.relations):
                self._relation(schema, name)
            for macro in with_needed(query.macros):
                for lookup in sorted(macro.lookups):
                    self._lookup(lookup)
                if self._is_new(f"fn.{macro.name}"):
                    self._database.execute(macro.definition)
            return self._database.cursor()

    def close(self) -> None:
        """Let go of everything; cursors stay usable."""
        self._database.close()

    def _relation(self, schema: str, name: str) -> None:
        place = f"{_SCHEMAS[schema]}.{name}"
        if self._is_new(place):
            rows = ROWS.get((schema, name))
            columns = PG_RELATIONS[schema, name].columns
            self._store(place, table_of(columns, rows(self._objects) if rows else ()))

    def _lookup(self, name: str) -> None:
        if self._is_new(f"lookup.{name}"):
            columns = LOOKUPS[name]
            rows = (
                dict(zip(columns, row, strict=True)) for row in LOOKUP_ROWS[name](self._objects)
            )
            self._store(f"lookup.{name}", table_of(columns, rows))

    def _is_new(self, name: str) -> bool:
        known = name in self._made
        self._made.add(name)
        return not known

    def _store(self, place: str, table: pa.Table) -> None:
        self._database.register("given", table)
        self._database.execute(f"CREATE TABLE {place} AS SELECT * FROM given")
        self._database.unregister("given")
