"""SQL in, rows out: a text format for tests that anyone can extend.

A file has tables, rows, then queries with their answers::

    # what this file is about
    table
    CREATE TABLE t (a INT, s TEXT)

    rows
    INSERT INTO t VALUES (1, 'x'), (2, NULL)

    query
    SELECT a, s FROM t WHERE a > 1
    ----
    2 | NULL

    error 42703
    SELECT nope FROM t

Blocks are separated by empty lines. Answers are compared without regard to order, unless
the block says ``query ordered``. Every query is run three ways (tests/slt/test_slt.py): as
a SELECT, as a view created after the rows, and as a view that saw the rows come, go and
come again. Answers are PostgreSQL's: ``python -m slt FILE…`` asks a real
one and writes them down.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from reclock.errors import InvalidValue
from reclock.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RULER = "----"


@dataclass(frozen=True, slots=True)
class Block:
    """One block: what it is (``table``, ``rows``, ``query``, ``error``), SQL, and the answer."""

    kind: str
    sql: str
    argument: str = ""
    answer: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """A file of blocks; ``about`` is its leading comment."""

    about: str
    blocks: tuple[Block, ...]

    def of(self, kind: str) -> tuple[Block, ...]:
        """Return the blocks of one kind."""
        return tuple(block for block in self.blocks if block.kind == kind)


def parse(text: str) -> Script:
    r"""Read a script.

    >>> parse("# x\n\nquery\nSELECT 1\n----\n1\n").of("query")[0].answer
    ('1',)
    """
    about: list[str] = []
    blocks: list[Block] = []
    number = 0
    for part in text.split("\n\n"):
        lines = part.strip("\n").split("\n")
        code = [line for line in lines if not line.startswith("#")]
        if not blocks:
            about += [line for line in lines if line.startswith("#")]
        if any(code):
            blocks.append(_block(code, number + 1))
        number += part.count("\n") + 2
    return Script("\n".join(about), tuple(blocks))


def _block(lines: list[str], line: int) -> Block:
    kind, _, argument = lines[0].partition(" ")
    if kind not in {"table", "rows", "query", "error"}:
        message = f'unknown block "{lines[0]}" at line {line}'
        raise InvalidValue(message, hint="a block begins with table, rows, query or error")
    body = lines[1:]
    answer: tuple[str, ...] = ()
    if RULER in body:
        at = body.index(RULER)
        body, answer = body[:at], tuple(body[at + 1 :])
    return Block(kind, "\n".join(body), argument.strip(), answer, line)


def write(script: Script) -> str:
    """Return the text of a script."""
    parts = [script.about] if script.about else []
    for block in script.blocks:
        head = f"{block.kind} {block.argument}".strip()
        tail = [RULER, *block.answer] if block.kind == "query" else []
        parts.append("\n".join([head, block.sql, *tail]))
    return "\n\n".join(parts) + "\n"


def shown(rows: Iterable[Sequence[object]], *, ordered: bool) -> tuple[str, ...]:
    """Return rows as lines; sorted unless their order matters.

    >>> shown([(2, None), (1, "x")], ordered=False)
    ('1 | x', '2 | NULL')
    """
    lines = [" | ".join(_value(v) for v in row) for row in rows]
    return tuple(lines if ordered else sorted(lines))


def _value(value: object) -> str:  # noqa: PLR0911 - one line per type
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.9g}"
        case Decimal():
            return f"{value.normalize():f}" if value.is_finite() else str(value)
        case bytes():
            return "\\x" + value.hex()
        case list() | tuple():
            return "{" + ",".join(_value(v) for v in value) + "}"
        case dict():
            return json.dumps(value, sort_keys=True)
        case datetime() | date():
            return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
        case Interval():
            return str(value)
    return str(value)


def answered_by_postgres(script: Script, url: str) -> Script:
    """Return the script with the answers of a PostgreSQL server."""
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute("DROP SCHEMA IF EXISTS slt CASCADE")
        connection.execute("CREATE SCHEMA slt")
        connection.execute("SET search_path = slt")
        blocks: list[Block] = []
        for block in script.blocks:
            made = block
            if block.kind in {"table", "rows"}:
                connection.execute(block.sql)
            elif block.kind == "query":
                rows = connection.execute(block.sql).fetchall()
                made = replace(block, answer=shown(rows, ordered=block.argument == "ordered"))
            blocks.append(made)
    return replace(script, blocks=tuple(blocks))


def main(files: list[str]) -> None:
    """Write PostgreSQL's answers into ``files``."""
    from reclock.testing.postgres import running_postgres  # noqa: PLC0415 - needs extras

    with running_postgres() as url:
        for name in files:
            path = Path(name)
            script = answered_by_postgres(parse(path.read_text()), url)
            path.write_text(write(script))


if __name__ == "__main__":
    main(sys.argv[1:])
