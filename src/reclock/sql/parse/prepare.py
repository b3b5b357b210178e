"""PREPARE and EXECUTE.

What is prepared is a query or a write, with parameters of its own: those of the text around it are
none of the statement that prepares it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.fragment import expression_of
from reclock.sql.parse.types import parse_type_text
from reclock.sql.statement import Parsed, Prepare
from reclock.sql.statement.session import Execute
from reclock.sql.types import INTERVAL, TEXT, Char, IntervalOf, Varchar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlglot.tokenizer_core import Token

    from reclock.sql.statement import Statement
    from reclock.sql.types import Type


def parse_prepare(
    cursor: Cursor, words: Iterable[str], inner: Callable[[Cursor], Statement]
) -> Prepare:
    """Read what follows PREPARE; ``inner`` reads a statement that begins with one of ``words``."""
    name = cursor.identifier()
    types: list[Type] = []
    if cursor.sees("("):
        types = [_type(part, cursor.text) for part in _parts(cursor)]
    cursor.expect("AS")
    if not any(cursor.sees(word) for word in words):
        msg = "a query, INSERT, UPDATE, DELETE or MERGE"
        raise cursor.error(msg)
    tokens = cursor.rest()
    first, last = int(tokens[0].start), int(tokens[-1].end)
    statement = inner(Cursor(tokens, cursor.text))
    text = cursor.text[first : last + 1]
    return Prepare(name, tuple(types), Parsed(statement, text, first + 1, parameters_of(tokens)))


def parse_execute(cursor: Cursor) -> Execute:
    """Read what follows EXECUTE."""
    name = cursor.identifier()
    arguments = []
    if cursor.sees("("):
        arguments = [expression_of(part, cursor.text) for part in _parts(cursor)]
    cursor.end()
    return Execute(name, tuple(arguments))


def parameters_of(tokens: Sequence[Token]) -> int:
    """Return the greatest n of the parameters $n."""
    pairs = pairwise(tokens)
    numbers = (str(b.text) for a, b in pairs if a.token_type == TokenType.PARAMETER)
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def _parts(cursor: Cursor) -> list[list[Token]]:
    """Read ``(a, b, …)`` and return the tokens of each."""
    cursor.expect("(")
    if cursor.accept(")"):
        return []
    parts = []
    while True:
        part = cursor.until((",",))
        if not part:
            msg = "a value"
            raise cursor.error(msg)
        parts.append(part)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return parts


def _type(tokens: Sequence[Token], text: str) -> Type:
    """Return a type; a length or the fields of an interval are none of a parameter."""
    written = parse_type_text(text[int(tokens[0].start) : int(tokens[-1].end) + 1])
    if isinstance(written, Varchar | Char):
        return TEXT
    return INTERVAL if isinstance(written, IntervalOf) else written
