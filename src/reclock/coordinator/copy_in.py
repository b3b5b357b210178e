r"""COPY table FROM STDIN: lines of PostgreSQL's text format, as rows of one INSERT.

Bytes come in pieces of any size. Rows are checked as they come and kept as Arrow columns; the end
makes all of them durable at one timestamp, or none. ``\.`` on a line of its own is the end too.

Tests: tests/coordinator/test_copy_in.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.coordinator.copy_text import utf8
from reclock.coordinator.rows import column_from, default_of
from reclock.coordinator.sequence.insert import places_of
from reclock.coordinator.sequence.target import target_table
from reclock.errors import Error, InvalidValue

if TYPE_CHECKING:
    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.item import Table
    from reclock.coordinator.result import Result
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import CopyFrom

_AT_ONCE: Final = 10_000
_ESCAPES: Final = {
    b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"
}  # fmt: skip
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


class CopyIn:
    """Takes what is copied into a table; ``finish`` writes it."""

    def __init__(self, context: Context, statement: CopyFrom) -> None:
        self._context = context
        self._statement = statement
        self._table = target_table(statement.name, context.core.world.catalog)
        if context.transaction is not None:
            context.transaction.check_write(self._table)
        self._places = places_of(statement.columns, statement.name, self._table)
        self._rest: list[bytes] = []
        self._rows: list[list[str | None]] = []
        self._parts: list[list[pa.Array]] = []
        self._count = 0
        self._ended = False

    @property
    def width(self) -> int:
        """How many columns a line has."""
        return len(self._places)

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._take(b"".join([*self._rest, line]))
            self._rest = []
        self._rest.append(rest)

    def finish(self) -> Result:
        """Make all rows durable, at one time; or part of the transaction."""
        if any(self._rest):
            self._take(b"".join(self._rest))
        self._keep()
        name, session = self._statement.name, self._context.session
        return session.copied(name, self._columns, self._count)

    def _take(self, line: bytes) -> None:
        if self._ended:
            return
        raw = line.removesuffix(b"\r")
        if raw == b"\\.":
            self._ended = True
            return
        self._count += 1
        try:
            values = _values(raw)
        except InvalidValue as error:
            error.detail = self._where()
            raise
        if len(values) != self.width:
            few = len(values) < self.width
            message = "missing data for a column" if few else "extra data after last column"
            detail = f"{self._where()}: {len(values)} values for {self.width} columns"
            raise InvalidValue(message, code="22P04", detail=detail)
        self._rows.append(values)
        if len(self._rows) >= _AT_ONCE:
            self._keep()

    def _keep(self) -> None:
        """Turn lines into columns of the table's types."""
        if not self._rows:
            return
        first = self._count - len(self._rows) + 1
        columns = []
        for at, place in enumerate(self._places):
            try:
                columns.append(
                    column_from((row[at] for row in self._rows), self._table.schema[place])
                )
            except Error as error:
                lines = f"{self._where(first)} to {self._count}"
                error.detail = "; ".join(filter(None, [lines, error.detail]))
                raise
        self._parts.append(columns)
        self._rows = []

    def _columns(self, table: Table, catalog: Catalog) -> list[pa.Array]:
        """Return all rows as columns of the table; what is not copied has its default."""
        if table.id != self._table.id:
            message = f'table "{table.name}" was made anew meanwhile'
            raise InvalidValue(message, code="42P01", hint="copy again")
        made = []
        for at, column in enumerate(table.columns):
            if at in self._places:
                place = self._places.index(at)
                parts = [part[place] for part in self._parts]
                made.append(pa.concat_arrays(parts) if parts else column_from([], column.column))
            else:
                default = column_from([default_of(column, catalog)], column.column)
                made.append(pa.repeat(default[0], self._count))
        return made

    def _where(self, line: int | None = None) -> str:
        return f"COPY {self._table.name}, line {self._count if line is None else line}"


def _values(line: bytes) -> list[str | None]:
    if b"\\" not in line:
        return [*utf8(line).split("\t")]
    return [_value(part) for part in line.split(b"\t")]


def _value(data: bytes) -> str | None:
    r"""Return a value of a line.

    >>> _value(rb"\N"), _value(rb"a\tb\\"), _value(rb"\101\xc3\xa9")
    (None, 'a\tb\\', 'Aé')
    """
    if data == b"\\N":
        return None
    return utf8(_ESCAPE.sub(_escaped, data))


def _escaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code[:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)
