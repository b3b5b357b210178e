"""Documents as programs: the statements of their ``sql`` blocks, and what is said of each.

A page is a session. Its parts, in their order:

- a block fenced as ``sql``: statements, which readers see and tests run;
- ``<!-- sql … -->``: statements that a reader need not see, such as the table of an example;
- ``<!-- file NAME … -->`` and ``<!-- topic NAME … -->``: lines of a file, records of a topic
  (``value``, or ``key => value``), which are there from then on;
- a block fenced as ``postgres``: statements for a PostgreSQL server that the page reads; such a
  page has a test of its own (tests/ingest/postgres/test_page.py);
- ``<!-- time DURATION -->``: so much time passes.

What is said of a statement stands in comments after it: ``-- ERROR 22012`` or ``-- ERROR 22012:
message`` if it fails, or the rows that it gives, as the shell prints them::

    SELECT 1 AS one;
    --  one
    -- -----
    --    1

Other comments say nothing to programs. Syntax, which is no program, is fenced as ``text``.

Tests: tests/testing/test_documents.py; run by tests/test_sql_blocks.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot.tokenizer_core import TokenType

from reclock.sql.parse.dialect import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART: Final = re.compile(
    r"^```(?P<fence>\w*)[^\n]*\n(?P<code>.*?)^```$"
    r"|^<!-- (?P<kind>sql|file|topic|time)\b *(?P<name>[^\n]*?)(?P<body>\n.*?)? ?-->$",
    re.MULTILINE | re.DOTALL,
)
_ERROR: Final = re.compile(r"^\s*-- ERROR (?P<code>\w{5})(?:: (?P<message>.+))?$", re.MULTILINE)
_RULE: Final = re.compile(r"-[-+]*-")


class Part(NamedTuple):
    """A part of a page: ``sql``, ``postgres``, ``file``, ``topic`` or ``time``, and its line."""

    kind: str
    name: str
    text: str
    line: int


class Statement(NamedTuple):
    """A statement, the error it ends with (``code`` None: it does not), the rows it gives."""

    text: str
    line: int
    code: str | None = None
    message: str | None = None
    rows: str | None = None


def parts(page: str) -> Iterator[Part]:
    """Yield the parts of a page that mean something to a program."""
    for found in _PART.finditer(page):
        line = page.count("\n", 0, found.start()) + 1
        if found["fence"] in ("sql", "postgres"):
            yield Part(found["fence"], "", found["code"], line + 1)
        elif found["kind"]:
            body = (found["body"] or "").removeprefix("\n")
            yield Part(found["kind"], found["name"], body, line + 1)


def statements(block: Part) -> Iterator[Statement]:
    """Yield the statements of a block, each with what its comments say.

    >>> list(statements(Part("sql", "", "SELECT 1/0; -- ERROR 22012", 7)))
    [Statement(text='SELECT 1/0', line=7, code='22012', message=None, rows=None)]
    """
    tokens = tokenize(block.text)
    first = None
    for place, token in enumerate(tokens):
        first = token if first is None else first
        last = place + 1 == len(tokens)
        ends = token.token_type == TokenType.SEMICOLON
        if not (ends or last):
            continue
        stop = int(token.start) if ends else int(token.end) + 1
        until = len(block.text) if last else int(tokens[place + 1].start)
        if first is not token or not ends:
            begin = int(first.start)
            line = block.line + block.text.count("\n", 0, begin)
            yield _said(block.text[begin:stop], line, block.text[stop:until].removeprefix(";"))
        first = None


def _said(text: str, line: int, after: str) -> Statement:
    error = _ERROR.search(after)
    if error is not None:
        return Statement(text, line, error["code"], error["message"])
    return Statement(text, line, rows=_rows(after))


def _rows(after: str) -> str | None:
    """Return the table among the comment lines after a statement, if there is one."""
    comments = [row.strip()[2:] for row in after.splitlines() if row.strip().startswith("--")]
    for place, comment in enumerate(comments):
        if place and _RULE.fullmatch(comment.strip()):
            return "\n".join(row.removeprefix(" ").rstrip() for row in comments[place - 1 :])
    return None
