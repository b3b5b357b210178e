"""What a publication sends of the tables of a source: marks of it, and a check that they hold.

The log does not say when a publication stops sending something; what was not sent is lost for
good. pgoutput looks the publication up as it was at each change, so a change of the publication
takes effect where its transaction commits, and all transactions before that are whole.

Definition. The *marks* of a table are the rows of the server's catalog by which it is published:
of the publication (which says what is sent), of the table or a table above it in the publication
(which has the filter and the list of columns), of its schema, and of its place as a partition; each
as its number and the transaction that wrote it. A row that is taken away and added again, or
changed and changed back, has another mark. Marks are taken when the source is made.

Invariant. ``check`` is called after transactions were read and before they are staged. If it
returns, everything that was read is whole: the marks are those of the beginning, no column has
another number, every transaction that was read is visible to this look, and no transaction under
way has taken a row of the marks away. The last two because a commit is in the log a moment before
it is visible, or long before it with synchronous standbys. Then the look waits, and after a while
raises ``SourceUnavailable``.

If the marks differ, nothing of what was read since the last look is staged: a lasting error.

Cost: a few queries by the server's indexes, once a pull, only while its log grows. They look at
catalogs alone and wait for no lock: a table that is being altered stops nothing.

Tests: tests/ingest/postgres/test_published.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.postgres.connection import text
from reclock.connectors.postgres.table import AGAIN, replaced
from reclock.errors import NewerFormat, SourceRegressed, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reclock.connectors.postgres.table import Table
    from reclock.durable.keyed import Json
    from reclock.time.timestamp import Lsn

VERSION: Final = 1
SENT: Final = ("insert", "update", "delete", "truncate")
"""What a publication must send."""

PATIENCE: Final = 2.0
_PAUSE: Final = 0.01
"""Seconds to wait for transactions to become visible, and between two looks."""

_SCHEMAS: Final = 150_000
"""PostgreSQL 15: the first version that publishes schemas."""

_MARKS: Final = """
WITH RECURSIVE pub AS (SELECT xmin, xmax, * FROM pg_publication WHERE pubname = {publication}),
above (own, at) AS (
  SELECT oid, oid FROM pg_class WHERE oid = ANY ({tables}::oid[])
  UNION ALL
  SELECT a.own, i.inhparent FROM above a
  JOIN pg_inherits i ON i.inhrelid = a.at JOIN pg_class c ON c.oid = a.at AND c.relispartition
),
marks (own, mark, writer, taker) AS (
  SELECT 0::oid, 'publication ' || p.oid, p.xmin, p.xmax FROM pub p
  UNION ALL
  SELECT a.own, 'table ' || r.oid, r.xmin, r.xmax
  FROM above a JOIN pg_publication_rel r ON r.prrelid = a.at JOIN pub p ON p.oid = r.prpubid
  UNION ALL
  SELECT a.own, 'under ' || i.inhparent, i.xmin, i.xmax FROM above a
  JOIN pg_inherits i ON i.inhrelid = a.at JOIN pg_class c ON c.oid = a.at AND c.relispartition
  UNION ALL
  SELECT a.own, 'all', NULL, '0' FROM above a JOIN pub p ON p.puballtables
  JOIN pg_class c ON c.oid = a.own AND a.own = a.at AND c.relpersistence = 'p'
  {schemas}
), now (next) AS (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8)
SELECT own::int8, mark || coalesce(' by ' || writer, ''),
  CASE WHEN taker::text <> '0' THEN
    pg_xact_status((taker::text::int8 + (next >> 32 << 32)
      - CASE WHEN taker::text::int8 > (next & 4294967295) + 2147483648 THEN 4294967296 ELSE 0 END
    )::text::xid8)
  END, taker::text
FROM marks, now
"""
_OF_SCHEMAS: Final = """
  UNION ALL
  SELECT a.own, 'schema ' || n.oid, n.xmin, n.xmax
  FROM above a JOIN pg_class c ON c.oid = a.at
  JOIN pg_publication_namespace n ON n.pnnspid = c.relnamespace JOIN pub p ON p.oid = n.pnpubid
"""
_NUMBERS: Final = 1 << 32
"""How many numbers transactions have in the log."""

_SENDS: Final = ("table ", "schema ", "all")
"""How marks begin by which a table is sent."""

_MOVED: Final = """
SELECT w.own::int8, w.name FROM (VALUES {columns}) w (own, name, number)
JOIN pg_attribute a ON a.attrelid = w.own::oid AND a.attname = w.name
WHERE a.attnum <> w.number AND NOT a.attisdropped
"""
_SNAPSHOT: Final = """
SELECT pg_snapshot_xmax(now)::text::int8,
  ARRAY(SELECT x::text::int8 & 4294967295 FROM pg_snapshot_xip(now) x)
FROM pg_current_snapshot() now
"""
_FLAGS: Final = """
SELECT pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication
WHERE pubname = {publication}
"""


@dataclass(frozen=True)
class Marks:
    """The marks of a publication, and of tables by their numbers."""

    publication: str
    tables: dict[int, tuple[str, ...]]

    def record(self) -> Json:
        """Return them as a fact."""
        tables = {str(number): list(marks) for number, marks in self.tables.items()}
        return {"v": VERSION, "publication": self.publication, "tables": tables}

    @classmethod
    def of(cls, record: Json | None) -> Marks | None:
        """Read what ``record`` made; None of a source that was made before there were marks."""
        if record is None:
            return None
        if record["v"] > VERSION:
            message = f"the marks of a publication have format {record['v']}, newer than {VERSION}"
            raise NewerFormat(message, hint="open the state with a later reclock")
        tables = {int(number): tuple(marks) for number, marks in record["tables"].items()}
        return cls(record["publication"], tables)


def marks_of(session: Any, publication: str, tables: Collection[int]) -> Marks | None:
    """Return the marks as they are; None if a transaction is under way that changes them.

    A publication that is gone has none.
    """
    schemas = _OF_SCHEMAS if session.info.server_version >= _SCHEMAS else ""
    numbers = text("{" + ",".join(map(str, sorted(tables))) + "}")
    query = _MARKS.format(publication=text(publication), tables=numbers, schemas=schemas)
    locked: set[tuple[str, str]] = set()
    for _ in range(2):
        rows = _rows(session, query)
        if any(status == "in progress" for _, _, status, _ in rows):
            return None
        taken = {(mark, taker) for _, mark, status, taker in rows if status == "committed"}
        if taken <= locked:  # a row that is still there was locked only
            break
        locked = taken
    else:
        return None
    whole, found = "", {number: list[str]() for number in tables}
    for own, mark, _, _ in rows:
        if own:
            found[own].append(mark)
        else:
            whole = mark
    return Marks(whole, {number: tuple(sorted(some)) for number, some in found.items()})


def left_out(session: Any, publication: str) -> list[str] | None:
    """Return which changes a publication does not send; None: there is no such publication."""
    found = _rows(session, _FLAGS.format(publication=text(publication)))
    if not found:
        return None
    names = ("inserts", "updates", "deletes", "truncations")
    return [name for name, given in zip(names, found[0], strict=True) if not given]


class Watch:
    """Looks whether all of some tables is sent; ``known`` are the marks of the beginning."""

    def __init__(self, publication: str, tables: Sequence[Table], known: Marks | None) -> None:
        self._publication = publication
        self._tables = {table.oid: table for table in tables}
        self._known = known
        """None: of a source without marks; then those that are found first."""

    def check(self, session: Any, read: Collection[int], whole: Lsn) -> None:
        """Raise if something of the transactions ``read`` may be missing.

        What is before ``whole`` is not in question.
        """
        deadline = monotonic() + PATIENCE
        while not self._settled(session, read, whole):
            if monotonic() > deadline:
                message = f'publication "{self._publication}" is being changed'
                detail = "a transaction that is not complete has changed it, or was read already"
                hint = "wait for that transaction, or for the synchronous standbys"
                raise SourceUnavailable(message, code="55006", detail=detail, hint=hint)
            sleep(_PAUSE)

    def _settled(self, session: Any, read: Collection[int], whole: Lsn) -> bool:
        """Return whether the look could see all that was read; raise if something is missing."""
        if read and not _are_visible(session, read):
            return False
        found = marks_of(session, self._publication, self._tables)
        if found is None:
            return False
        self._compare(session, found, f"what was changed after {whole} is not known")
        return True

    def _compare(self, session: Any, found: Marks, detail: str) -> None:
        name = self._publication
        for number, table in self._tables.items():
            if not any(mark.startswith(_SENDS) for mark in found.tables[number]):
                message = f'publication "{name}" has no table {table.shown} any more'
                hint = f"publish the table again; then {AGAIN}"
                raise SourceRegressed(message, code="42P01", detail=detail, hint=hint)
        if left := left_out(session, name):
            message = f'publication "{name}" leaves out {" and ".join(left)} now'
            hint = f"SET (publish = '{', '.join(SENT)}'); then {AGAIN}"
            raise SourceRegressed(message, code="55000", detail=detail, hint=hint)
        known = self._known = self._known or found
        if found.publication != known.publication:
            message = f'publication "{name}" was changed, or is another of that name'
            raise SourceRegressed(message, code="55000", detail=detail, hint=AGAIN)
        for number, table in self._tables.items():
            if found.tables[number] != known.tables.get(number):
                message = f'publication "{name}" was changed for table {table.shown}'
                facts = f"its rows, its columns or its place are chosen otherwise; {detail}"
                raise SourceRegressed(message, code="55000", detail=facts, hint=AGAIN)
        for number, column in self._moved(session):
            raise replaced(self._tables[number], column, detail)

    def _moved(self, session: Any) -> list[tuple[int, str]]:
        """Return the columns that have another number than they had."""
        columns = [
            f"({table.oid}::int8, {text(column.name)}, {column.number})"
            for table in self._tables.values()
            for column in table.columns
            if column.number is not None
        ]
        return _rows(session, _MOVED.format(columns=", ".join(columns))) if columns else []


def _are_visible(session: Any, read: Collection[int]) -> bool:
    """Return whether transactions are complete for a look from now on.

    Those that are not may be beyond the last number that is complete: numbers go round.
    """
    ((beyond, under_way),) = _rows(session, _SNAPSHOT)
    later = ((xid - beyond) % _NUMBERS for xid in read)
    return all(distance >= _NUMBERS // 2 for distance in later) and not {*under_way} & {*read}


def _rows(session: Any, query: str) -> list[Any]:
    with session.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
