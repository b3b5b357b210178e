"""A table of PostgreSQL as a source reads it: its columns, its key, and how it may change.

A ``Table`` is fixed when the source is created and is part of its durable facts. The log says at
every change what the table is then (``pgoutput.Relation``); ``Mapping.of`` compares the two::

    a column more           it is left out
    a column less           lasting: its values are not known from here on
    another type            lasting: values before and after are not of one kind
    another order           lasting: names have moved to other columns
    another identity        lasting, if old rows cannot be found by it

The server numbers the columns of a table in the order in which they were added, and no number is
used twice. The log has columns in the order of their numbers, but not the numbers: a last column
that was dropped and added again looks the same there. ``published`` compares the numbers.

Format. Version 1 of the record of a table has no numbers; ``None`` stands for them.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import NewerFormat, SourceRegressed
from reclock.sql import types as t

if TYPE_CHECKING:
    from reclock.connectors.format.decoder import Field
    from reclock.connectors.postgres.pgoutput import Relation

AGAIN: Final = "drop the source and create it again: it copies the tables as they are then"

_NATIVE: Final = {
    16: t.BOOLEAN, 21: t.SMALLINT, 23: t.INTEGER, 20: t.BIGINT, 700: t.REAL, 701: t.DOUBLE,
    25: t.TEXT, 1043: t.TEXT, 1042: t.TEXT, 17: t.BYTEA, 1082: t.DATE, 1114: t.TIMESTAMP,
    1184: t.TIMESTAMPTZ,
}  # fmt: skip
"""Types that are copied in binary, by the numbers that PostgreSQL gives them for ever.

``char(n)`` is one of them: written as text it would lose its blanks.
"""

_OTHERS: Final = {1186: t.INTERVAL, 114: t.JSON, 3802: t.JSON, 19: t.TEXT}
_ARRAYS: Final = {
    1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1009: 25, 1015: 1043,
    1001: 17, 1182: 1082, 1115: 1114, 1185: 1184, 1187: 1186, 199: 114, 3807: 3802, 1014: 1042,
}  # fmt: skip
NUMERIC: Final = 1700
_NUMERIC_ARRAY: Final = 1231
_UUID: Final = 2950
_HEADER: Final = 4
VERSION: Final = 2
"""Of the record of a table."""


@dataclass(frozen=True)
class TableColumn:
    """A column: its type there (``oid``, ``modifier``, and ``base`` of a domain), and here."""

    name: str
    oid: int
    modifier: int
    base: int
    nullable: bool = True
    number: int | None = None
    """Its number there; None: it was not recorded."""

    @property
    def type(self) -> t.Type:
        """Its type here; what has none is text.

        >>> str(TableColumn("n", 1700, 655366, 1700).type)
        'numeric(10,2)'
        >>> str(TableColumn("u", 2950, -1, 2950).type)
        'text'
        """
        if self.base == NUMERIC:
            return _numeric(self.modifier)
        if self.base == _NUMERIC_ARRAY:
            return t.Array(_numeric(self.modifier))
        if self.base in _ARRAYS:
            element = _ARRAYS[self.base]
            return t.Array((_NATIVE | _OTHERS)[element])
        return (_NATIVE | _OTHERS).get(self.base, t.TEXT)

    @property
    def is_native(self) -> bool:
        """Whether it is copied in binary, and not as text."""
        return self.base in _NATIVE

    @property
    def is_cast(self) -> bool:
        """Whether a cast to text writes it as the log does."""
        return self.base in (NUMERIC, _UUID, 1186, 114, 3802)

    @property
    def is_unbounded(self) -> bool:
        """Whether its numbers may have more digits than fit here."""
        is_numeric = self.base in (NUMERIC, _NUMERIC_ARRAY)
        return is_numeric and _numeric(self.modifier) == t.Numeric()

    def record(self) -> dict[str, Any]:
        """Return it as a fact."""
        return {
            "name": self.name, "oid": self.oid, "modifier": self.modifier, "base": self.base,
            "nullable": self.nullable, "number": self.number,
        }  # fmt: skip


def _numeric(modifier: int) -> t.Numeric:
    """Return the numeric of a modifier; those that do not fit are ``numeric``, and checked."""
    if modifier < _HEADER:
        return t.Numeric()
    precision, scale = (modifier - _HEADER) >> 16, (modifier - _HEADER) & 0x7FF
    scale -= 2048 if scale >= 1024 else 0  # its sign
    fits = 0 <= scale <= precision <= t.MAX_PRECISION
    return t.Numeric(precision, scale) if fits else t.Numeric()


@dataclass(frozen=True)
class Table:
    """A table: ``key`` are the columns that tell its rows apart; none: the whole row does."""

    oid: int
    schema: str
    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[int, ...]
    identity: str
    filter: str | None = None
    """Which rows are published."""

    @property
    def shown(self) -> str:
        """Its name, for messages."""
        return f"{self.schema}.{self.name}"

    def record(self) -> dict[str, Any]:
        """Return it as a fact."""
        return {
            "v": VERSION, "oid": self.oid, "schema": self.schema, "name": self.name,
            "columns": [column.record() for column in self.columns], "key": list(self.key),
            "identity": self.identity, "filter": self.filter,
        }  # fmt: skip

    @classmethod
    def of(cls, record: dict[str, Any]) -> Table:
        """Read what ``record`` made, in any version."""
        if (version := record.get("v", 1)) > VERSION:
            message = f"a table of PostgreSQL has format {version}, newer than {VERSION}"
            raise NewerFormat(message, hint="open the state with a later reclock")
        columns = tuple(TableColumn(**column) for column in record["columns"])
        return cls(
            record["oid"], record["schema"], record["name"], columns, tuple(record["key"]),
            record["identity"], record["filter"],
        )  # fmt: skip


@dataclass(frozen=True)
class Mapped:
    """A table and where its columns are in the changes of the log from here on."""

    table: Table
    fields: tuple[Field, ...]
    places: tuple[int, ...]
    identity: str
    is_whole: bool = False
    """Whether the changes have the columns of the table, and no others, in their order."""

    @classmethod
    def of(cls, table: Table, fields: tuple[Field, ...], relation: Relation) -> Mapped:
        """Compare a table with what the log says of it; refuse what cannot go on."""
        there = {column.name: at for at, column in enumerate(relation.columns)}
        for column in table.columns:
            at = there.get(column.name)
            if at is None:
                message = f'column "{column.name}" of table {table.shown} was dropped or renamed'
                raise SourceRegressed(message, code="42703", hint=AGAIN)
            now = relation.columns[at]
            changed = now.type != column.oid
            if not changed and column.oid in (NUMERIC, _NUMERIC_ARRAY):  # domains have their own
                changed = now.modifier != column.modifier
            if changed:
                message = f'column "{column.name}" of table {table.shown} has another type now'
                detail = f"its type had the number {column.oid}, and has {now.type}"
                raise SourceRegressed(message, code="42804", detail=detail, hint=AGAIN)
        keys = {column.name for column in relation.columns if column.is_key}
        own = {table.columns[at].name for at in table.key}
        if table.key and relation.identity in "di" and keys != own:
            message = f"table {table.shown} has another replica identity now"
            detail = f"it was ({', '.join(sorted(own))}), and is ({', '.join(sorted(keys))})"
            raise SourceRegressed(message, code="55000", detail=detail, hint=AGAIN)
        places = tuple(there[column.name] for column in table.columns)
        for column, before, at in zip(table.columns[1:], places, places[1:], strict=False):
            if at < before:
                detail = "the columns of the log have another order than they had"
                raise replaced(table, column.name, detail)
        is_whole = places == tuple(range(len(relation.columns)))
        return cls(table, fields, places, relation.identity, is_whole)


def replaced(table: Table, column: str, detail: str) -> SourceRegressed:
    """Return what is said of a name that another column has now."""
    message = f'column "{column}" of table {table.shown} is another column of that name now'
    hint = f"it was dropped and added again, or columns were renamed; {AGAIN}"
    return SourceRegressed(message, code="42703", detail=detail, hint=hint)
