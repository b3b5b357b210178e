r"""COPY table FROM STDIN in PostgreSQL's formats, text, CSV and binary, as rows of one INSERT.

Bytes come in pieces of any size. Rows are checked as they come and kept as Arrow columns; the end
makes all of them durable at one timestamp, or none. ``\.`` on a line of its own is the end too.

Outside of a transaction what is kept is at most ``PIECE_BYTES``: more is staged on disk
(``engine.staged_write``). In a transaction, which may undo and run it again, it is in memory.

Tests: tests/session/test_copy_in.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.engine.staged_write import StagedWrite
from reclock.errors import Error, InvalidValue
from reclock.rows.copy_csv import Records, marked, read_csv, typed
from reclock.rows.copy_text import utf8
from reclock.rows.given import column_from
from reclock.session.dml.defaults import Defaults
from reclock.session.dml.insert import places_of
from reclock.session.dml.target import target_table
from reclock.sql.zone import in_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Table
    from reclock.rows.result import Result
    from reclock.session.statements.context import Context
    from reclock.sql.statement import CopyFrom
    from reclock.sql.statement.copy import CopyFormat
    from reclock.sql.types import Type

_AT_ONCE: Final = 10_000
PIECE_BYTES: Final = 32 << 20
"""So much is kept in memory."""

_DEFAULT: Final = object()
"""A value of a line that stands for the default of its column."""

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_HEAD: Final = len(_SIGNATURE) + 8
_ESCAPES: Final = {
    b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"
}  # fmt: skip
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


class CopyIn:
    """Takes what is copied into a table; ``finish`` writes it."""

    def __init__(self, context: Context, statement: CopyFrom) -> None:
        self._context = context
        self._statement = statement
        self._table = target_table(statement.name, context.catalog)
        if context.transaction is not None:
            context.transaction.check_write(self._table)
        self._places = places_of(statement.columns, statement.name, self._table)
        self._defaults = Defaults(context.session)
        self._rest: list[bytes] = []
        self._rows: list[list[Any]] = []
        self._parts: list[list[pa.Array]] = []
        self._count = 0
        self._ended = False
        self._headed = statement.format.header == "off"
        self._records = Records(statement.format)
        self._whole = False
        self._size = 0
        self._staged: StagedWrite | None = None
        self._zone = context.settings.time_zone
        self.read_binary: Callable[[bytes, Type], Any] | None = None
        """Reads a value of the binary format: the server's, who has it."""

    @property
    def width(self) -> int:
        """How many columns a line has."""
        return len(self._places)

    @property
    def format(self) -> CopyFormat:
        """How values come."""
        return self._statement.format

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        with in_zone(self._zone):
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self.format.name == "csv":
            self._take_csv(self._records.cut(data))
            return
        if self.format.name == "binary":
            self._rest.append(data)
            self._take_binary()
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._take(b"".join([*self._rest, line]))
            self._rest = []
        self._rest.append(rest)

    def finish(self) -> Result:
        """Make all rows durable, at one time; or part of the transaction."""
        with in_zone(self._zone):
            return self._finish()

    def _finish(self) -> Result:
        if self.format.name == "csv":
            self._take_csv(self._records.end())
        elif self.format.name == "binary":
            # Between two rows the end may come without its mark: ADBC sends none.
            if not self._ended and not (self._whole and not any(self._rest)):
                message = "unexpected EOF in COPY data"
                raise InvalidValue(message, code="22P04", detail=self._where())
        elif any(self._rest):
            self._take(b"".join(self._rest))
        self._keep()
        name, session = self._statement.name, self._context.session
        if self._staged is not None:
            self._stage()
        return session.copied(name, self._columns, self._count, self._staged)

    def _piled(self, columns: list[pa.Array]) -> None:
        """Keep some rows, or stage what is kept if that is much."""
        self._parts.append(columns)
        self._size += sum(column.nbytes for column in columns)
        if self._size > PIECE_BYTES and self._context.transaction is None:
            self._stage()

    def _stage(self) -> None:
        """Move what is kept to disk."""
        if self._staged is None:
            self._staged = StagedWrite(self._context.core, self._table)
        columns = self._columns(self._table, self._context.catalog)
        self._parts, self._size = [], 0
        self._defaults = Defaults(self._context.session)  # which has the numbers of these rows
        if len(columns[0]):
            self._staged.add(columns)

    def _take(self, line: bytes) -> None:
        if self._ended:
            return
        raw = line.removesuffix(b"\r")
        if raw == b"\\.":
            self._ended = True
            return
        form = self.format
        if not self._headed:
            self._headed = True
            self._check_header(_values(raw, form))
            return
        self._count += 1
        try:
            values = _values(raw, form)
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

    def _check_header(self, names: Sequence[str | None]) -> None:
        """Refuse a first line that must have the names of the columns and has not."""
        wanted = [self._table.schema[place].name for place in self._places]
        if self.format.header == "match" and list(names) != wanted:
            message = "column name mismatch in header line"
            detail = f"expected {', '.join(wanted)}; got {', '.join(map(str, names))}"
            raise InvalidValue(message, code="22P04", detail=detail)

    def _take_csv(self, data: bytes) -> None:
        """Take whole records of CSV."""
        if not data or self._ended:
            return
        names = [self._table.schema[place].name for place in self._places]
        if not self._headed:
            self._headed = True
            first, data = self._records.first(data)
            if self.format.header == "match":
                self._check_header(
                    [c[0].as_py() for c in read_csv(first, self.format, names, 0).columns]
                )
            if not data:
                return
        try:
            found = read_csv(data, self.format, names, self._count)
        except InvalidValue as error:
            error.detail = f"COPY {self._table.name}: {error.detail}"
            raise
        first_line = self._count + 1
        self._count += found.num_rows
        columns = []
        marks = marked(data, self.format, names)
        for at, (place, texts) in enumerate(zip(self._places, found.columns, strict=True)):
            mask = None if marks is None else pc.is_null(marks[at])
            given = texts if mask is None else pc.if_else(mask, pa.scalar(None, pa.string()), texts)
            try:
                made = typed(given, self._table.schema[place])
                columns.append(made if mask is None else self._defaulted(made, mask, place))
            except Error as error:
                lines = f"{self._where(first_line)} to {self._count}"
                error.detail = "; ".join(filter(None, [lines, error.detail]))
                raise
        self._piled(columns)

    def _take_binary(self) -> None:
        """Take whole rows of the binary format; what is left waits for more."""
        data = b"".join(self._rest)
        at = 0
        if not self._whole:
            if len(data) < _HEAD:
                self._rest = [data]
                return
            if not data.startswith(_SIGNATURE):
                message = "COPY file signature not recognized"
                raise InvalidValue(message, code="22P04")
            at = _HEAD + int.from_bytes(data[_HEAD - 4 : _HEAD], "big")
            self._whole = True
        while not self._ended:
            row = _binary_row(data, at, self.width)
            if row is None:
                break
            fields, at = row
            if fields is None:
                self._ended = True
                break
            self._count += 1
            self._rows.append([self._binary_value(n, field) for n, field in enumerate(fields)])
            if len(self._rows) >= _AT_ONCE:
                self._keep()
        self._rest = [data[at:]]

    def _binary_value(self, at: int, field: bytes | None) -> Any:
        assert self.read_binary is not None
        if field is None:
            return None
        try:
            return self.read_binary(field, self._table.schema[self._places[at]].type)
        except Error as error:
            error.detail = "; ".join(filter(None, [self._where(), error.detail]))
            raise

    def _keep(self) -> None:
        """Turn lines into columns of the table's types."""
        if not self._rows:
            return
        first = self._count - len(self._rows) + 1
        columns = []
        for at, place in enumerate(self._places):
            try:
                column = self._table.schema[place]
                if self.format.default is None:
                    columns.append(column_from((row[at] for row in self._rows), column))
                    continue
                mask = pa.array([row[at] is _DEFAULT for row in self._rows], pa.bool_())
                values = (None if row[at] is _DEFAULT else row[at] for row in self._rows)
                columns.append(self._defaulted(column_from(values, column), mask, place))
            except Error as error:
                lines = f"{self._where(first)} to {self._count}"
                error.detail = "; ".join(filter(None, [lines, error.detail]))
                raise
        self._piled(columns)
        self._rows = []

    def _defaulted(self, column: pa.Array, mask: pa.Array, place: int) -> pa.Array:
        """Return a column with its default where ``mask`` says so."""
        marks = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        if not len(marks):
            return column
        found = self._table.columns[place]
        if found.default is None and found.sequence is None:
            message = "unexpected default marker in COPY data"
            detail = f'Column "{found.column.name}" has no default value.'
            raise InvalidValue(message, code="22P04", detail=detail)
        fresh = Defaults(self._context.session)  # the numbers of a sequence are of these rows alone
        defaults = fresh.column(self._table, place, len(marks), self._context.catalog)
        order = np.arange(len(column))
        order[marks] = len(column) + np.arange(len(marks))
        return pa.concat_arrays([column, defaults]).take(pa.array(order))

    def _columns(self, table: Table, catalog: Catalog) -> list[pa.Array]:
        """Return all rows as columns of the table; what is not copied has its default."""
        if table.id != self._table.id:
            message = f'table "{table.name}" was recreated meanwhile'
            raise InvalidValue(message, code="42P01", hint="copy again")
        made = []
        count = sum(len(part[0]) for part in self._parts)
        for at, column in enumerate(table.columns):
            if at in self._places:
                place = self._places.index(at)
                parts = [part[place] for part in self._parts]
                made.append(pa.concat_arrays(parts) if parts else column_from([], column.column))
            else:
                made.append(self._defaults.column(table, at, count, catalog))
        return made

    def _where(self, line: int | None = None) -> str:
        return f"COPY {self._table.name}, line {self._count if line is None else line}"


def _binary_row(data: bytes, at: int, width: int) -> tuple[list[bytes | None] | None, int] | None:
    """Return the fields of a row and where it ends; None for fields is the end of all rows."""
    if len(data) < at + 2:
        return None
    count = int.from_bytes(data[at : at + 2], "big", signed=True)
    at += 2
    if count == -1:
        return None, at
    if count != width:
        message = f"row field count is {count}, expected {width}"
        raise InvalidValue(message, code="22P04")
    fields: list[bytes | None] = []
    for _ in range(count):
        if len(data) < at + 4:
            return None
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size < 0:
            fields.append(None)
            continue
        if len(data) < at + size:
            return None
        fields.append(data[at : at + size])
        at += size
    return fields, at


def _values(line: bytes, form: CopyFormat) -> list[Any]:
    if form.default is not None:
        default, null = form.default.encode(), form.null.encode()
        parts = _split(line, form.delimiter)
        return [
            None if part == null else _DEFAULT if part == default else _plain(part)
            for part in parts
        ]
    if form.delimiter == "\t" and form.null == "\\N":
        if b"\\" not in line:
            return [*utf8(line).split("\t")]
        return [_value(part) for part in line.split(b"\t")]
    null = form.null.encode()
    return [None if part == null else _plain(part) for part in _split(line, form.delimiter)]


def _split(line: bytes, delimiter: str) -> list[bytes]:
    """Return the parts between delimiters that have no backslash before them."""
    mark = re.escape(delimiter.encode())
    return re.findall(rb"(?:^|" + mark + rb")((?:\\.|[^\\" + mark + rb"])*)", line, re.DOTALL)


def _plain(data: bytes) -> str:
    return utf8(_ESCAPE.sub(_escaped, data))


def _value(data: bytes) -> str | None:
    r"""Return a value of a line.

    >>> _value(rb"\N"), _value(rb"a\tb\\"), _value(rb"\101\xc3\xa9")
    (None, 'a\tb\\', 'Aé')
    """
    if data == b"\\N":
        return None
    return _plain(data)


def _escaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code[:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)
