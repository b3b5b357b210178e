"""Copies of tables at an exported snapshot: ranges of pages, read in whichever process.

A ``Copy`` reads one table. A *range* is of pages of the table: rows whose ctid is in ``[start,
stop)``; all ranges together are the table as the snapshot has it, each row once. The last range
reaches to the end, whatever the table has grown to. A range is read in *steps* of some pages, whose
rows have the first of them as their position. Every reader is a transaction of its own at
the same snapshot, so that all of them, of all tables, see the same database.

Rows are read by ADBC, as ``COPY … TO STDOUT (FORMAT binary)`` into Arrow; types that have no binary
form here are written as text by the server. ADBC is told not to ask for the types of the database
when it connects, which takes as long as 100,000 rows: those that are copied in binary have the same
numbers everywhere.

A session says by its name at the server how many rows of which table it has read: ``names_of`` are
those of all sessions of a copy, in whichever process.

Tests: tests/ingest/postgres/test_copy.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.postgres.connection import identifier, text
from reclock.connectors.postgres.rows import Places, records_of
from reclock.connectors.postgres.values import from_arrow, from_strings
from reclock.errors import NotSupported, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.connectors.format.decoder import Field
    from reclock.connectors.postgres.connection import Connection
    from reclock.connectors.postgres.table import Table, TableColumn
    from reclock.remap.batch import Range

END: Final = 1 << 32
"""Beyond the last page that a table can have."""

_BATCH_ROWS: Final = 65_536
_TYPES: Final = {"adbc.postgresql.type_resolver_mode": "builtin"}
_HINT: Final = "adbc.postgresql.batch_size_hint_bytes"
_BATCH_BYTES: Final = 1 << 20
"""How much is decoded at once: in memory that is used again, and need not be asked for."""


@dataclass(frozen=True)
class Copy:
    """Reads pages of one table at a snapshot: a value that travels to tasks."""

    connection: Connection
    table: Table
    fields: tuple[Field, ...]
    snapshot: str
    label: str = "reclock"
    """How the names of its sessions begin."""
    pages: int = 0
    step: int = END
    """About how many pages the table has, and how many are read at once."""

    def read(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges of pages, as records; their positions are pages."""
        driver, done = adbc(), 0
        try:
            with (
                driver.connect(self.connection.uri, _TYPES, autocommit=True) as session,
                session.cursor() as cursor,
            ):
                cursor.adbc_statement.set_options(**{_HINT: str(_BATCH_BYTES)})
                cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute(f"SET TRANSACTION SNAPSHOT {text(self.snapshot)}")
                for span in chain.from_iterable(map(self._steps, ranges)):
                    for batch in self._pages(cursor, span):
                        done += batch.num_rows
                        yield batch
                    name = f"{self.label} {self.table.oid} {done}"
                    cursor.execute(f"SET application_name = {text(name)}")
        except driver.Error as error:
            said = " ".join(self.connection.scrubbed(str(error)).split())
            message = f"table {self.table.shown} cannot be copied"
            code = getattr(error, "sqlstate", None) or "08006"
            raise SourceUnavailable(message, detail=said, code=code) from error

    def __call__(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges."""
        return self.read(ranges)

    def visit(self) -> None:
        """Ask the server for something; raise if it does not answer."""
        self.connection.sql().close()

    def _steps(self, span: Range) -> Iterator[Range]:
        cuts = range(span.start + self.step, min(span.stop, self.pages), self.step)
        for start, stop in pairwise((span.start, *cuts, span.stop)):
            yield span._replace(start=start, stop=stop)

    def _pages(self, cursor: Any, span: Range) -> Iterator[pa.RecordBatch]:
        cursor.execute(self.query(span))
        for batch in cursor.fetch_record_batch():
            for at in range(0, batch.num_rows, _BATCH_ROWS):
                yield self._records(batch.slice(at, _BATCH_ROWS), span)

    def query(self, span: Range) -> str:
        """Return the query of a range."""
        columns = ", ".join(map(_selected, self.table.columns))
        pages = []
        if span.start > 0:
            pages.append(f"ctid >= '({span.start},0)'::tid")
        if span.stop < END:
            pages.append(f"ctid < '({span.stop},0)'::tid")
        if self.table.filter is not None:
            pages.append(f"({self.table.filter})")
        where = f" WHERE {' AND '.join(pages)}" if pages else ""
        return f"SELECT {columns} FROM ONLY {identifier(self.table.schema, self.table.name)}{where}"

    def _records(self, batch: pa.RecordBatch, span: Range) -> pa.RecordBatch:
        faults: dict[int, str] = {}
        columns = []
        for column, there, field in zip(
            batch.columns, self.table.columns, self.fields, strict=True
        ):
            stored: Any = column.storage if isinstance(column, pa.ExtensionArray) else column
            if there.is_native:
                columns.append(from_arrow(stored, field, faults))
            else:
                columns.append(from_strings(stored, field, faults, exact=there.is_unbounded))
        size = batch.num_rows
        zeros = np.zeros(size, np.int64)
        places = Places(np.full(size, span.start, np.int64), zeros, np.zeros(size, np.bool_))
        made = records_of(self.table, columns, places, faults)
        part = pa.repeat(pa.scalar(str(span.part), pa.string()), size)
        return made.set_column(0, made.schema.names[0], part)


def _selected(column: TableColumn) -> str:
    """Return how a column is copied: in binary, or as the text that the log would have.

    A cast to text writes some types (inet) otherwise than the log does; ``format`` does not.
    """
    name = identifier(column.name)
    if column.is_native:
        return name
    if column.is_cast:
        return f"{name}::text"
    return f"CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END"


def adbc() -> Any:
    """Return the client that reads copies into Arrow, or say how to get it."""
    try:
        import adbc_driver_postgresql.dbapi as driver  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "the libraries that read PostgreSQL are not installed"
        raise NotSupported(message, hint="pip install 'reclock[postgres]'") from error
    return driver


def names_of(session: Any, label: str) -> dict[tuple[Any, ...], int]:
    """Return how many rows the sessions of a copy say that they have read, each of each table."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT pid, backend_start::text, application_name FROM pg_stat_activity "
            f"WHERE starts_with(application_name, {text(label + ' ')})"
        )
        found = {}
        for pid, begun, name in cursor.fetchall():
            table, rows = name.removeprefix(label).split()
            found[pid, begun, table] = int(rows)
        return found
