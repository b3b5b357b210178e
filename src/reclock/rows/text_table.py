r"""Results as text: aligned columns, as psql prints them.

Numbers stand at the right, all else at the left; NULL is empty. A value of several lines is shown
in one, with ``\n`` for their ends. Wide characters count as two. Tests: tests/cli/test_shell.py.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from reclock.rows.copy_text import text_of
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from reclock.sql.schema import Schema

_SHOWN: Final = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def table(rows: Sequence[Sequence[Any]], schema: Schema) -> str:
    """Return rows below their column names, and how many there are.

    >>> from reclock.sql.schema import Column, Schema
    >>> schema = Schema((Column("region", t.TEXT), Column("n", t.BIGINT)))
    >>> print(table([("north", 3), (None, 12)], schema))
     region | n
    --------+----
     north  |  3
            | 12
    (2 rows)
    """
    names = schema.names
    texts = [cells(row, schema) for row in rows]
    widths = [
        max([width(name), *(width(row[place]) for row in texts)])
        for place, name in enumerate(names)
    ]
    right = [number(column.type) for column in schema]
    lines = [" | ".join(_padded(n, w) for n, w in zip(names, widths, strict=True))]
    lines.append("-+-".join("-" * w for w in widths))
    for row in texts:
        cellar = zip(row, widths, right, strict=True)
        lines.append(" | ".join(_padded(text, w, right=r) for text, w, r in cellar))
    ends = ("-" if place == 1 else " " for place in range(len(lines)))
    body = [f"{end}{text}{end}".rstrip() for end, text in zip(ends, lines, strict=True)]
    return "\n".join([*body, f"({len(rows)} row{'' if len(rows) == 1 else 's'})"])


def records(rows: Sequence[Sequence[Any]], schema: Schema) -> str:
    r"""Return rows one below the other, a line for each column: ``\x``."""
    names = schema.names
    wide = max([0, *map(width, names)])
    lines = []
    for number_, row in enumerate(rows, 1):
        lines.append(f"-[ RECORD {number_} ]".ljust(wide + 3, "-"))
        lines += [
            f"{_padded(name, wide)} | {text}".rstrip()
            for name, text in zip(names, cells(row, schema), strict=True)
        ]
    return "\n".join(lines or ["(0 rows)"])


def cells(row: Sequence[Any], schema: Schema) -> list[str]:
    """Return the values of a row as they are shown."""
    return [
        "" if value is None else text_of(value, column.type).translate(_SHOWN)
        for value, column in zip(row, schema, strict=True)
    ]


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> width("año"), width("東京")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def number(kind: t.Type) -> bool:
    """Return whether values of a type stand at the right."""
    return isinstance(kind, t.Numeric) or kind in (*t.INTEGERS, *t.FLOATS)


def _padded(text: str, wanted: int, *, right: bool = False) -> str:
    blank = " " * (wanted - width(text))
    return blank + text if right else text + blank
