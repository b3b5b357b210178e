"""The frame of the rows of a COPY … TO STDOUT: a header, a signature, an end.

Tests: tests/server/test_copy_formats.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.server.codec.rows import copy_rows
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from reclock.sql.schema import Schema
    from reclock.sql.statement.copy import CopyFormat

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""With flags, and the length of a header that has nothing in it."""

END: Final = b"\xff\xff"


def before_rows(form: CopyFormat, schema: Schema) -> bytes:
    """Return the messages that come before the first row; the signature comes with it."""
    if form.name == "binary" or form.header == "off":
        return b""
    names = pa.record_batch(
        [pa.array([name]) for name in schema.names], [f"c{i}" for i in range(len(schema))]
    )
    return copy_rows(names, [TEXT] * len(schema), form)


def signed(messages: bytes) -> bytes:
    """Return messages of which the first begins with the signature, as PostgreSQL sends it."""
    size = int.from_bytes(messages[1:5], "big") + len(SIGNATURE)
    return b"d" + size.to_bytes(4, "big") + SIGNATURE + messages[5:]


def after_rows(form: CopyFormat, rows: int) -> bytes:
    """Return the messages that come after the last of so many rows."""
    if form.name != "binary":
        return b""
    return _message(END) if rows else signed(_message(END))


def _message(data: bytes) -> bytes:
    return b"d" + (len(data) + 4).to_bytes(4, "big") + data
