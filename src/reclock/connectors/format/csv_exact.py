"""CSV records one by one: the definition of what FORMAT CSV accepts.

A payload is one record of RFC 4180: as many values as there are columns, between
delimiters; a value in quotes may hold delimiters, line ends and, doubled, quotes. A value
without quotes holds neither quotes nor line ends. Empty without quotes is NULL, ``""`` is
the empty text. One line end after the record does not count. Values are read by ``literal``,
as PostgreSQL's COPY reads them.

Equal to it on all input: ``csv_batch``, by tests/connectors/format/test_csv_property.py.
Itself: tests/connectors/format/test_csv.py.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from reclock.connectors.format.decoder import Fault, in_field, null_in, shown
from reclock.connectors.format.json_exact import decoded
from reclock.connectors.format.literal import reader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.connectors.format.decoder import Field


@lru_cache(maxsize=256)
def record_reader(fields: tuple[Field, ...], delimiter: str) -> Callable[[bytes], Sequence[Any]]:
    """Return how a payload becomes the values of ``fields``, or a ``Fault``."""
    columns = [(f.name, reader_of(f.type), f.nullable) for f in fields]
    value = re.compile(rf'"((?:[^"]|"")*)"|([^"\r\n{re.escape(delimiter)}]*)')

    def read(payload: bytes) -> list[Any]:
        texts = split(decoded(payload), delimiter, value)
        if len(texts) != len(columns):
            message = f"{len(texts)} values for {len(columns)} columns"
            raise Fault(message)
        pairs = zip(texts, columns, strict=True)
        return [_value(text, *column) for text, column in pairs]

    return read


def split(text: str, delimiter: str, value: re.Pattern[str]) -> list[str | None]:
    """Return the values of a record, as text; NULL as None."""
    end = len(text) - (2 if text.endswith("\r\n") else text.endswith(("\n", "\r")))
    values: list[str | None] = []
    at = -1
    while at < end:
        found = value.match(text, at + 1, end)
        if found is None:
            message = f"not CSV at character {at + 1}: {shown(text)}"
            raise Fault(message)
        quoted, bare = found.groups()
        values.append((bare or None) if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at < end and text[at] != delimiter:
            message = f"not CSV at character {at}: {shown(text)}"
            raise Fault(message)
    return values


def _value(text: str | None, name: str, read: Callable[[str], Any], nullable: bool) -> Any:
    if text is None:
        if not nullable:
            raise null_in(name)
        return None
    try:
        return read(text)
    except Fault as fault:
        raise in_field(name, fault) from fault
